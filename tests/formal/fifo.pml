/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress with endless messages. Paths are FIFOs of limited length. Path 1 is an adversary: it may lose
 * everything for ever, or what it likes, and make packets late. Path 0 may do the same, but a loss there
 * counts as progress, so a cycle that Spin reports loses nothing on path 0 while path 1 does its worst.
 * Which path is the good one does not matter: every state in which path 0 was bad before is reached too.
 * Progress is that all N messages are delivered and N new ones begin; under weak fairness of processes.
 *
 * A timer only fires when nothing of its path is under way in the FIFOs (late packets may be): a path
 * whose timer always fires too early has no progress to offer.
 */
#ifndef EM
#define EM 2
#endif
#define EVIDENCE
#include "rules.pml"

#ifndef FAILS
#define FAILS 1 /* unanswered probes, each with evidence, that fail a path */
#endif
#ifndef CAP
#define CAP 2
#endif

chan fwd[2] = [CAP] of { short }; /* an ack or answer comes back at once, is lost, or is late */
#ifdef LATE
short late;
#endif
#ifdef BLACKOUT
bit black;       /* from now on everything that is sent is lost, on both paths */
bit was_black[2]; /* already so when the path's first unanswered probe left */
#endif

/* What happens to packet y of channel ch when something of the channel changes; 0: it is gone. */
#define RENUMBERED(epochs, psns) \
  PACK(KIND(y), CHANNEL(y), INC(y), (EPOCH(y) + EM - (epochs)) % EM, (PSN(y) + QM - (psns)) % QM, ARG(y))
#define PSN_SENT 0  /* W11: nothing is half the PSN space behind PSN q */
#define SETTLED 1   /* PSNs are renumbered by d */
#define NEW_EPOCH 2 /* W4: nothing outlives EM - 2 changes; then epochs are renumbered */
inline touch(ch, change)
{
  if
  :: y == 0 || CHANNEL(y) != ch -> skip
  :: y && CHANNEL(y) == ch && change == NEW_EPOCH ->
    if
    :: EPOCH(y) == NEXT(s_epoch[ch]) -> y = 0
    :: else -> y = RENUMBERED(1, 0)
    fi
  :: y && CHANNEL(y) == ch && change != NEW_EPOCH ->
    if
    :: EPOCH(y) != s_epoch[ch] || KIND(y) == FENCE -> skip
    :: EPOCH(y) == s_epoch[ch] && KIND(y) != FENCE && change == SETTLED -> y = RENUMBERED(0, d)
    :: EPOCH(y) == s_epoch[ch] && KIND(y) != FENCE && change == PSN_SENT ->
      if
      :: (q + QM - SPEAKS_OF(y)) % QM >= QM / 2 -> y = 0
      :: else
      fi
    fi
  fi
}

inline sweep_fifo(fifo, ch, change)
{
  i = len(fifo);
  do
  :: i == 0 -> break
  :: else ->
    fifo?y;
    touch(ch, change);
    if
    :: y -> fifo!y
    :: else
    fi;
    i--
  od
}

inline sweep(ch, change)
{
  sweep_fifo(fwd[0], ch, change);
  sweep_fifo(fwd[1], ch, change)
#ifdef LATE
  ;
  y = late;
  touch(ch, change);
  late = y
#endif
}

inline age_psn(ch, newest) { sweep(ch, PSN_SENT) }

inline rotate_psn(ch, by)
{
  s_psn[ch] = 0;
  base[ch] = (base[ch] + QM - by) % QM;
  sweep(ch, SETTLED)
}

inline age_epoch(ch)
{
  sweep(ch, NEW_EPOCH);
  s_epoch[ch] = 0;
  r_epoch[ch] = (r_epoch[ch] + EM - 1) % EM
}

inline owe_ack(ch) { x = STATE_OF(ch) }

#define QUIET(p) (len(fwd[p]) == 0)
#define ROOM(p) (len(fwd[p]) < CAP)

/* x goes onto path p, or is lost if the adversary holds the FIFO full. */
inline put(p)
{
#ifdef BLACKOUT
  if
  :: black -> x = 0
  :: else
  fi;
#endif
  if
  :: x && ROOM(p) -> fwd[p]!x
  :: x && !ROOM(p) -> assert(p == 1)
  :: x == 0
  fi;
  x = 0
}

#define USABLE(p) (!fencing[p] && !unconfirmed[p])
/* What a path lost goes to the other one, if that can take it. R5's default, the same path, livelocks. */
#ifdef RESEND_SAME
#define MINE(p, m) (msg[m] == WAIT && (avoid[m] != OTHER(p) + 1 || !USABLE(OTHER(p))))
#else
#define MINE(p, m) (msg[m] == WAIT && (avoid[m] != (p) + 1 || !USABLE(OTHER(p))))
#endif
#if N == 1
#define PICK(p) (MINE(p, 0) -> 0 : N)
#else
#define PICK(p) (MINE(p, 0) -> 0 : (MINE(p, 1) -> 1 : N))
#endif
#define CAN_DATA(p) (MAY_DATA(p) && PICK(p) < N)

/* Evidence is judged from the first probe that stays unanswered, not from its last repetition. */
inline begin_judging(p)
{
  later[OTHER(p)] = 0;
  evidence[p] = 0;
#ifdef BLACKOUT
  was_black[p] = black
#endif
}

inline probe_now(p)
{
  send_probe(p);
  put(p)
}

/* Data that waits for path p is as good as a scout. */
inline scout(p)
{
  if
#ifdef NO_SCOUT
  :: true -> skip
#else
  :: USABLE(p) && !CAN_DATA(p) && !FULL(p) && !TAIL_IS_PROBE(p) && ROOM(p) -> transmit(p, PROBE); put(p)
#ifdef EVIDENCE_FROM_REPEATS
  :: USABLE(p) && TAIL_IS_PROBE(p) && ROOM(p) -> probe_now(p)
#endif
  :: else -> skip
#endif
  fi
}

#ifdef NO_EVIDENCE
#define COUNTS(p) true
#else
#define COUNTS(p) evidence[p]
#endif
#ifdef NO_W5
#define MAY_JUDGE(p) COUNTS(p)
#else
#define MAY_JUDGE(p) (COUNTS(p) && !unconfirmed[p])
#endif

inline timer(p)
{
  if
  :: probing[p] == 0 ->
    if
    :: MAY_PROBE(p) -> probing[p] = 1; begin_judging(p); probe_now(p)
    :: else -> skip
    fi
  :: probing[p] > 0 && MAY_JUDGE(p) && probing[p] >= FAILS && NOT_LAST(p) ->
#ifdef BLACKOUT
    assert(!was_black[p]); /* nothing sent since was acked, so nothing speaks against this path alone */
#endif
    fencing[p] = 1;
    printf("fail c%d\n", p)
  :: probing[p] > 0 && MAY_JUDGE(p) && probing[p] < FAILS && MAY_PROBE(p) ->
    probing[p]++;
    begin_judging(p);
    probe_now(p)
  :: else ->
    if
    :: MAY_PROBE(p) ->
#ifdef EVIDENCE_RESET
      begin_judging(p);
#endif
      probe_now(p)
    :: else -> skip
    fi;
    scout(OTHER(p))
  fi
}

/* A fence is repeated over every path that has nothing under way, the closed one included (W1). */
#ifdef NO_W1
/* It is a packet of its carrier: only another usable path takes it. */
#define CARRIES(p, carrier) (carrier == OTHER(p) && USABLE(carrier) && QUIET(carrier))
#else
#define CARRIES(p, carrier) QUIET(carrier)
#endif
inline fence_over(ch, by)
{
  if
  :: CARRIES(ch, by) -> send_fence(ch); put(by)
  :: else -> skip
  fi
}
#define MAY_FENCE(p) (fencing[p] && (CARRIES(p, 0) || CARRIES(p, 1)))
#define TIMER_RUNS(p) (!fencing[p] && (s_n[p] > 0 || unconfirmed[p]) && QUIET(p) && !CAN_DATA(p))

proctype sender(bit p)
{
  do
  :: d_step { CAN_DATA(p) && ROOM(p) -> a = PICK(p); send_data(p, a); put(p); clear_scratch() }
  :: d_step { TIMER_RUNS(p) -> timer(p); clear_scratch() }
  :: d_step {
      MAY_FENCE(p) ->
#if defined(FORGER) && !defined(NO_OPENING)
      if
      :: OPENS(p) && QUIET(p) -> fence_over(p, p); probe_now(p)
      :: else -> fence_over(p, p)
      fi;
      fence_over(p, OTHER(p));
#else
      fence_over(p, 0);
      fence_over(p, 1);
#endif
      clear_scratch()
    }
  od
}

/* The packet at hand arrives; its reply is in x. */
inline arrive()
{
  d_step {
    handle();
#ifdef BLACKOUT
    if
    :: black -> x = 0
    :: else
    fi;
#endif
    skip
  }
}

/* A loss on path 0 counts as progress. */
proctype good_path()
{
next:
  do
  :: atomic {
      fwd[0]?x -> arrive();
      if
      :: x == 0
      :: x -> arrive()
      :: x -> clear_scratch(); printf("lost on path 0\n"); goto progress_lost
#ifdef LATE
      :: x && late == 0 -> late = x; clear_scratch(); printf("lost on path 0\n"); goto progress_lost
#endif
      fi;
      clear_scratch()
    }
  :: atomic { fwd[0]?x -> x = 0; printf("lost on path 0\n"); goto progress_lost }
#ifdef LATE
  :: atomic { late == 0 && len(fwd[0]) > 0 -> fwd[0]?late; printf("lost on path 0\n"); goto progress_lost }
#endif
  od;
progress_lost:
  goto next
}

proctype adversary()
{
  do
  :: atomic {
      fwd[1]?x ->
      if
      :: arrive()
      :: d_step { printf("lost\n"); x = 0 }
#ifdef LATE
      :: late == 0 -> late = x; x = 0
      :: late == 0 -> late = x; arrive() /* and a copy of it is late */
#endif
      fi;
      if
      :: x == 0
      :: x -> arrive()
      :: x -> d_step { printf("reply lost\n"); x = 0 }
#ifdef LATE
      :: x && late == 0 -> late = x; x = 0
      :: x && late == 0 -> late = x; arrive()
#endif
      fi;
      clear_scratch()
    }
#ifdef LATE
  :: atomic {
      late -> x = late; late = 0; arrive();
      if
      :: x == 0
      :: x -> arrive()
      :: x -> d_step { printf("reply lost\n"); x = 0 }
      fi;
      clear_scratch()
    }
#endif
#ifdef BLACKOUT
  :: !black -> d_step { black = 1; printf("blackout: what is sent from now on is lost\n") }
#endif
  od
}

/* Endless messages; a generation of N is done before the next begins, as in-order completion asks. */
proctype source()
{
#if N == 1
#define ALL_DONE (msg[0] == DONE)
#else
#define ALL_DONE (msg[0] == DONE && msg[1] == DONE)
#endif
  do
  :: d_step {
      ALL_DONE ->
      printf("new messages\n");
      i = 0;
      do
      :: i == N -> break
      :: else -> msg[i] = WAIT; got[i] = 0; avoid[i] = 0; i++
      od;
      clear_scratch()
    };
progress:
    skip
  od
}

#ifdef FORGER
/* Somebody who knows everything but what is on the wire now. Whatever it did, and when it stops, the rest must
 * go on: once, or with AGAIN as often as it likes (then each time counts as progress). */
inline forged()
{
  printf("forged "); SAY_PACKET(x);
  handle();
  x = 0;
  clear_scratch()
}

proctype forger()
{
again:
  if
  :: d_step { !fencing[0] && s_n[0] > 0 -> x = PACK(ANSWER, 0, s_inc, s_epoch[0], s_psn[0], 0); forged() }
  :: d_step { !closed[0] -> x = PACK(FENCE, 0, s_inc, r_epoch[0], 0, 0); forged() }
  :: goto gone
  fi;
#ifdef AGAIN
progress_forged:
  goto again;
#endif
gone:
  skip
}
#endif

init
{
  atomic {
#ifdef FORGER
    run forger();
#endif
    run sender(0);
    run sender(1);
    run good_path();
    run adversary();
    run source()
  }
}
