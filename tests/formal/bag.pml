/* SPDX-License-Identifier: Apache-2.0
 *
 * Safety over the harshest network: whatever is sent is lost, arrives at once, or goes into a bag of K
 * late packets, each of which may arrive at any later time, in any order, any number of times. Only W4
 * and W11 (no packet lives longer than T) take anything out of the bag for certain. FIFO paths are a
 * special case. Timers may fire at any time, so a path may be failed without any cause.
 */
#include "rules.pml"

#ifndef K
#define K 2
#endif

short bag[K];                     /* descending, zeros behind: the order inside means nothing */
#ifdef GIVE_UP
bit failed;                       /* the connection: nothing is sent any more but fences */
#endif
#ifdef PORTS
/* Each path is a port, which is handed a packet before it sends it, and stops when it hears of the failure. */
byte job[2];                      /* 1 + the message */
bit stopped[2];
#endif
#ifdef RESTART
bit restarted;
#endif

inline sort_bag()
{
  i = K - 1;
  do
  :: i == 0 -> break
  :: else ->
    v = 0;
    do
    :: v == i -> break
    :: else ->
      if
      :: bag[v] < bag[v + 1] -> y = bag[v]; bag[v] = bag[v + 1]; bag[v + 1] = y
      :: else
      fi;
      v++
    od;
    i--
  od
}

/* W11: nothing is half the PSN space late. */
inline age_psn(ch, newest)
{
#ifdef NO_W11
  skip
#else
  i = 0;
  do
  :: i == K -> break
  :: else ->
    if
    :: bag[i] && CHANNEL(bag[i]) == ch && EPOCH(bag[i]) == s_epoch[ch] && KIND(bag[i]) != FENCE &&
       (newest + QM - SPEAKS_OF(bag[i])) % QM >= QM / 2 -> bag[i] = 0
    :: else
    fi;
    i++
  od;
  sort_bag()
#ifdef PIPE
  ;
  if
  :: pending[ch] && EPOCH(pending[ch]) == s_epoch[ch] && (newest + QM - PSN(pending[ch])) % QM >= QM / 2 ->
    pending[ch] = 0
  :: else
  fi
#endif
#endif
}

#define RENUMBERED(p, epochs, psns) \
  PACK(KIND(p), CHANNEL(p), INC(p), (EPOCH(p) + EM - (epochs)) % EM, (PSN(p) + QM - (psns)) % QM, ARG(p))

inline rotate_psn(ch, by)
{
  s_psn[ch] = 0;
  base[ch] = (base[ch] + QM - by) % QM; /* an ack is only taken in the receiver's own epoch */
  i = 0;
  do
  :: i == K -> break
  :: else ->
    if
    :: bag[i] && CHANNEL(bag[i]) == ch && EPOCH(bag[i]) == s_epoch[ch] && KIND(bag[i]) != FENCE ->
      bag[i] = RENUMBERED(bag[i], 0, by)
    :: else
    fi;
    i++
  od;
  sort_bag()
#ifdef PIPE
  ;
  if
  :: pending[ch] && EPOCH(pending[ch]) == s_epoch[ch] -> pending[ch] = RENUMBERED(pending[ch], 0, by)
  :: else
  fi
#endif
}

/* W4: nothing outlives EM - 2 changes of its channel's epoch. */
#ifdef W4_ONE_MORE
#define TOO_OLD(p, ch) (EPOCH(p) == s_epoch[ch])
#else
#define TOO_OLD(p, ch) (EPOCH(p) == NEXT(s_epoch[ch]))
#endif
inline age_epoch(ch)
{
#ifndef NO_W4
  i = 0;
  do
  :: i == K -> break
  :: else ->
    if
    :: bag[i] && CHANNEL(bag[i]) == ch && TOO_OLD(bag[i], ch) -> bag[i] = 0
    :: else
    fi;
    i++
  od;
#ifdef PIPE
  if
  :: pending[ch] && TOO_OLD(pending[ch], ch) -> pending[ch] = 0
  :: else
  fi;
#endif
#endif
#ifdef ROTATE
  i = 0;
  do
  :: i == K -> break
  :: else ->
    if
    :: bag[i] && CHANNEL(bag[i]) == ch -> bag[i] = RENUMBERED(bag[i], 1, 0)
    :: else
    fi;
    i++
  od;
#ifdef PIPE
  if
  :: pending[ch] -> pending[ch] = RENUMBERED(pending[ch], 1, 0)
  :: else
  fi;
#endif
  s_epoch[ch] = 0;
  r_epoch[ch] = (r_epoch[ch] + EM - 1) % EM;
#endif
  sort_bag()
}

/* Acks leave at any time (below), so none is owed for anything in particular. */
inline owe_ack(ch) { skip }

inline put_into_bag()
{
  bag[K - 1] = x;
  x = 0;
  sort_bag()
}

#ifdef GIVE_UP
#define ALIVE !failed &&
#else
#define ALIVE
#endif

/* The oldest message of a direction that waits, N if none does. */
#if N == 1
#define OLDEST(dir) (msg[dir] == WAIT -> 0 : N)
#else
#define OLDEST(dir) (msg[(dir) * N] == WAIT -> 0 : (msg[(dir) * N + 1] == WAIT -> 1 : N))
#endif

#ifdef PORTS
#define DATA_STEPS(ch)                                                                  \
  :: !stopped[ch] && !job[ch] && MAY_DATA(ch) && OLDEST(0) < N -> d_step {              \
      a = OLDEST(0); msg[a] = FLYING; job[ch] = a + 1; printf("m%d handed to c%d\n", a, ch) } \
  :: !stopped[ch] && job[ch] && MAY_DATA(ch) -> d_step {                                \
      a = job[ch] - 1; job[ch] = 0; transmit(ch, MSG + a); skip }                       \
  :: !stopped[ch] && job[ch] && fencing[ch] -> d_step { a = job[ch] - 1; job[ch] = 0; requeue(a, ch); skip } \
  :: failed && !stopped[ch] -> d_step { stop(ch); skip }
#else
#define DATA_STEPS(ch)                                                                  \
  :: ALIVE MAY_DATA(ch) && OLDEST(DIR(ch)) < N -> d_step {                              \
      a = DIR(ch) * N + OLDEST(DIR(ch)); send_data(ch, a); skip }
#endif

/* What channel ch's ends may do. An ack may leave at any time. */
#define CHANNEL_STEPS(ch)                                                               \
  DATA_STEPS(ch)                                                                        \
  :: ALIVE MAY_PROBE(ch) -> d_step { send_probe(ch); skip }                             \
  :: ALIVE MAY_FAIL(ch) -> d_step { fencing[ch] = 1; printf("fail c%d\n", ch) }         \
  :: fencing[ch] -> d_step { send_fence(ch) }                                           \
  :: !closed[ch] -> x = STATE_OF(ch)

/* Spurious failures of paths with nothing unsettled change nothing worth a state. */
#ifdef NO_FENCE_CAP
#define MAY_FAIL(ch) false
#elif defined(NO_W5)
#define MAY_FAIL(ch) (!fencing[ch] && s_n[ch] > 0 && NOT_LAST(ch))
#else
#define MAY_FAIL(ch) (!fencing[ch] && s_n[ch] > 0 && NOT_LAST(ch) && !unconfirmed[ch])
#endif

#ifdef FORGER
/* It says that `n` more PSNs were settled, as delivered. It comes at once, or never. */
inline forge_answer(ch, n)
{
  x = PACK(ANSWER, ch, s_inc, s_epoch[ch], (s_psn[ch] + n) % QM, n);
  printf("forged "); SAY_PACKET(x);
  handle()
}
#endif

inline complete_with_errors()
{
  i = 0;
  do
  :: i == NM -> break
  :: else ->
    if
    :: msg[i] == DONE -> skip
    :: else ->
      msg[i] = ERR;
      printf("m%d completes with an error\n", i)
    fi;
    i++
  od
}

#ifdef PORTS
/* A port of a failing connection stops: what it was handed does not leave. */
inline stop(ch)
{
  stopped[ch] = 1;
  job[ch] = 0;
  printf("c%d stops\n", ch);
#ifdef FLUSH_EARLY
  /* What it had under way is given up before the other port has stopped. */
  forget_unsettled(ch);
#endif
#ifndef NO_FENCE_CAP
  if
  :: s_n[ch] > 0 && !unconfirmed[ch] -> fencing[ch] = 1
  :: else
  fi;
#endif
  skip
}
#ifdef NO_STOP_ALL
#define ALL_STOPPED (stopped[0] || stopped[1])
#else
#define ALL_STOPPED (stopped[0] && stopped[1])
#endif
#else
#define ALL_STOPPED true
#endif

active proctype world()
{
end: /* a state where nothing is left to do is no error here: progress is fifo.pml's */
  do
  :: atomic {
      if
      CHANNEL_STEPS(0)
      CHANNEL_STEPS(1)
#if DIRS == 2
      CHANNEL_STEPS(2)
      CHANNEL_STEPS(3)
#endif
      /* A late packet arrives; it, or a copy, may come again. */
      :: bag[0] -> x = bag[0]
#if K > 1
      :: bag[1] -> x = bag[1]
#endif
#if K > 2
      :: bag[2] -> x = bag[2]
#endif
      :: bag[0] -> d_step { x = bag[0]; bag[0] = 0; sort_bag(); skip }
#if K > 1
      :: bag[1] -> d_step { x = bag[1]; bag[1] = 0; sort_bag(); skip }
#endif
#if K > 2
      :: bag[2] -> d_step { x = bag[2]; bag[2] = 0; sort_bag(); skip }
#endif
#ifdef PIPE
      :: pending[0] -> d_step { commit(0) }
      :: pending[1] -> d_step { commit(1) }
#endif
#ifdef GIVE_UP
      /* The retry limit is passed: final fences on whatever is unsettled. */
#ifdef PORTS
      /* One port has passed its retry limit. */
      :: !failed -> d_step { failed = 1; printf("connection fails\n"); stop(0); skip }
#else
      :: !failed -> d_step {
          failed = 1;
          printf("connection fails\n");
          if :: s_n[0] > 0 && !unconfirmed[0] -> fencing[0] = 1 :: else fi;
          if :: s_n[1] > 0 && !unconfirmed[1] -> fencing[1] = 1 :: else fi;
#ifdef NO_W8
          complete_with_errors();
#endif
          skip
        }
#endif
#ifndef NO_FENCE_CAP
      :: failed && ALL_STOPPED && !fencing[0] && !fencing[1] -> d_step { complete_with_errors(); skip } /* all answered */
#endif
      :: failed && ALL_STOPPED -> d_step { /* T without sending: nothing is under way */
          i = 0;
          do
          :: i == K -> break
          :: else -> bag[i] = 0; i++
          od;
#ifdef PIPE
          pending[0] = 0;
          pending[1] = 0;
#endif
          complete_with_errors();
          skip
        }
#endif
#ifdef FORGER
      /* Somebody who knows everything but what is on the wire now: an answer when no fence is out, and, with a
       * probe out, one that it cannot tell from an answer; a fence. */
      :: !fencing[0] -> d_step { forge_answer(0, 0); skip }
      :: !fencing[0] && s_n[0] > 0 -> d_step { forge_answer(0, 1); skip }
      :: !closed[0] -> d_step { x = PACK(FENCE, 0, s_inc, r_epoch[0], 0, 0); printf("forged "); SAY_PACKET(x) }
#endif
#ifdef RESTART
      /* The receiver forgets everything but its number, which is a new one. */
      :: !restarted -> d_step {
          restarted = 1;
          printf("receiver restarts\n");
          r_inc = 1;
          i = 0;
          do
          :: i == C -> break
          :: else -> r_epoch[i] = 0; closed[i] = 0; base[i] = 0; hist[i] = 0; i++
          od;
          skip
        }
      /* The sender is told: what was under way completes with an error, the rest starts anew. */
      :: r_inc != s_inc -> d_step {
          s_inc = r_inc;
          printf("sender begins the new incarnation\n");
          i = 0;
          do
          :: i == NM -> break
          :: else ->
            if
            :: msg[i] == FLYING -> msg[i] = ERR
            :: else
            fi;
            i++
          od;
          v = 0;
          do
          :: v == C -> break
          :: else -> s_epoch[v] = 0; fencing[v] = 0; unconfirmed[v] = 0; forget_unsettled(v); v++
          od;
          skip
        }
#endif
      fi;
      do
      :: x == 0 -> break
      /* Lost, late, or at once; then its reply is in x. */
      :: x -> d_step { printf("lost\n"); x = 0 }
      :: x && bag[K - 1] == 0 -> d_step { printf("late\n"); put_into_bag(); skip }
      :: x -> d_step { handle(); skip }
      od;
      d_step { clear_scratch() }
    }
  od
}
