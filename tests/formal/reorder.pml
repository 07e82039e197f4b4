/* SPDX-License-Identifier: Apache-2.0
 *
 * One path whose fabric reorders: a packet may be overtaken by up to D later ones, or lost, or doubled
 * within its place in the queue. The receiver keeps a hole open until the highest PSN is more than D
 * beyond it, or until a timer. Endless messages; losses count as progress, as in fifo.pml.
 */
#ifndef D
#define D 1
#endif
#define N 2
#define W 3   /* unsettled PSNs at most, one kept for a probe */
#define QM 8
#define CAP 3
#define WAIT 0
#define FLYING 1
#define DONE 2
#define PROBE 1
#define MSG 2

chan fwd = [CAP] of { byte, byte, byte }; /* PSN, slot content, by how many it was overtaken */
byte s_psn, s_n;
byte slot[W];
byte msg[N];
byte base;      /* everything below is settled */
byte above;     /* bit i: PSN base + i has arrived */
byte below;     /* bit i: PSN base - 1 - i has arrived */
bit got[N];
byte q, v, w, i, d, p, top;

inline clear_scratch() { q = 0; v = 0; w = 0; i = 0; d = 0; p = 0; top = 0 }

#define HIGHEST ((above >> 3) & 1 -> 3 : ((above >> 2) & 1 -> 2 : ((above >> 1) & 1 -> 1 : 0)))

inline step_base(bit_in)
{
  printf("psn%d settled: %d\n", base, bit_in);
  below = ((below << 1) | bit_in) & ((1 << W) - 1);
  above = above >> 1;
  base = (base + 1) % QM
}

/* Base moves over what arrived and over holes that D later PSNs have closed. */
inline settle_base()
{
  do
  :: above & 1 -> step_base(1)
  :: !(above & 1) && above && HIGHEST > D -> step_base(0)
  :: else -> break
  od
}

/* The sender reads an ack. Taking it at once is enough here: late acks are bag.pml's. */
inline take_ack()
{
  d = (base + QM - s_psn) % QM;
  assert(d <= s_n);
  i = 0;
  do
  :: i == d -> break
  :: else ->
    v = slot[i];
#if defined(NO_W10_SHORT)
    w = (d - 1 - i < W - 1 -> (below >> (d - 1 - i)) & 1 : 0); /* a history one bit shorter than the window */
#elif defined(FROM_HIGHEST)
    /* W bits from the highest PSN seen, not from the base: an open hole pushes bits out. */
    top = (above -> HIGHEST + 1 : 0);
    w = (d - 1 - i + top < W -> (below >> (d - 1 - i)) & 1 : 0);
#else
    w = (below >> (d - 1 - i)) & 1;
#endif
    if
    :: v >= MSG && w -> assert(got[v - MSG]); msg[v - MSG] = DONE; printf("m%d done\n", v - MSG)
    :: v >= MSG && !w -> msg[v - MSG] = WAIT; printf("m%d back to the queue\n", v - MSG)
    :: v < MSG
    fi;
    i++
  od;
  /* Renumber from 0, so that states alike are one state. */
  i = 0;
  do
  :: i == W -> break
  :: else -> slot[i] = (i + d < s_n -> slot[i + d] : 0); i++
  od;
  s_n = s_n - d;
  s_psn = (s_psn + d) % QM
}

inline arrive()
{
  printf("arrives psn%d m%d\n", q, v - MSG);
  d = (q + QM - base) % QM;
  if
  :: d < QM / 2 && !((above >> d) & 1) ->
    above = above | (1 << d);
    if
    :: v >= MSG -> assert(!got[v - MSG]); got[v - MSG] = 1
    :: else
    fi;
    settle_base()
  :: else
  fi
}

#define FIRST_WAITING (msg[0] == WAIT -> 0 : (msg[1] == WAIT -> 1 : N))
#define TAIL_IS_PROBE (s_n > 0 && slot[s_n - 1] == PROBE)

active proctype sender()
{
  do
  :: d_step { s_n < W - 1 && FIRST_WAITING < N && len(fwd) < CAP ->
      i = FIRST_WAITING; msg[i] = FLYING; slot[s_n] = MSG + i; q = (s_psn + s_n) % QM; s_n++;
      printf("send psn%d m%d\n", q, i); fwd!q, MSG + i, 0; clear_scratch() }
  :: d_step { s_n > 0 && len(fwd) == 0 && (s_n < W || TAIL_IS_PROBE) && !(s_n < W - 1 && FIRST_WAITING < N) ->
      if
      :: TAIL_IS_PROBE -> skip
      :: else -> slot[s_n] = PROBE; s_n++
      fi;
      printf("probe psn%d\n", (s_psn + s_n + QM - 1) % QM); fwd!((s_psn + s_n + QM - 1) % QM), PROBE, 0; clear_scratch() }
  od
}

active proctype path()
{
next:
  do
  :: atomic { /* the first arrives; its ack comes, or is lost */
      fwd?q, v, p ->
      d_step { arrive(); skip };
      if
      :: d_step { take_ack(); clear_scratch() }
      :: printf("ack lost\n"); clear_scratch(); goto progress_lost
      fi
    }
  :: atomic { fwd?q, v, p -> printf("lost psn%d\n", q); clear_scratch(); goto progress_lost }
  /* One copy arrives, another stays. It counts like a loss: it could go on for ever. */
  :: atomic {
      len(fwd) > 0 -> d_step { fwd?<q, v, p>; arrive(); take_ack(); clear_scratch() };
      goto progress_lost
    }
#if D > 0
  :: d_step { /* the second overtakes the first */
      len(fwd) > 1 && fwd?[_, _, eval(0)] || len(fwd) > 1 && D > 1 && fwd?[_, _, eval(1)] ->
      fwd?w, d, p;
      fwd?q, v, top;
      fwd!w, d, p + 1;
      i = len(fwd) - 1;
      do
      :: i == 0 -> break
      :: else -> fwd?w, d, p; fwd!w, d, p; i--
      od;
      arrive();
      take_ack();
      clear_scratch()
    }
#endif
  od;
progress_lost:
  goto next
}

#ifndef NO_W10
/* The hole timer: a hole is open, and what would fill it was not just overtaken but lost. */
active proctype hole_timer()
{
  do
  :: d_step { above && !fwd??[_, _, 1] && !fwd??[_, _, 2] -> step_base(0); settle_base(); clear_scratch() }
  od
}
#endif

active proctype source()
{
  do
  :: d_step { msg[0] == DONE && msg[1] == DONE ->
      msg[0] = WAIT; msg[1] = WAIT; got[0] = 0; got[1] = 0 };
progress:
    skip
  od
}
