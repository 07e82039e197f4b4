/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the transport's reliability (docs/formal.md): state and steps of both ends, no network.
 * bag.pml and fifo.pml put two different networks below them. A -DNO_Wn build takes correction n out.
 *
 * A channel is one direction of one path: c = 2 * direction + path. PSNs count modulo QM, epochs modulo
 * EM, and a channel has at most W unsettled PSNs, the last of them kept for a probe. D is 0: the
 * receiver's base is one behind the highest PSN it saw, and a hole is a loss.
 */
#ifndef N
#define N 2 /* messages a direction, one packet each */
#endif
#ifndef EM
#define EM 4
#endif
#ifndef QM
#define QM 4
#endif
#ifndef W
#define W 2
#endif
#ifndef DIRS
#define DIRS 1
#endif

#define C (2 * DIRS)
#define NM (N * DIRS)
#define OTHER(c) ((c) ^ 1)   /* the other path, same direction */
#define REVERSE(c) ((c) ^ 2) /* the same path, other direction */
#define DIR(c) ((c) >> 1)
#define NEXT(e) (((e) + 1) % EM)

/* A packet is a number: kind, channel it speaks of, incarnation, epoch, PSN, argument. */
#define DATA 1   /* psn; arg = message + 1, or 0: a probe */
#define ACK 2    /* psn = base, arg = history: bit k is PSN base - 1 - k */
#define FENCE 3
#define ANSWER 4 /* as ACK, final */
#define PACK(k, c, i, e, q, a) ((k) | (c) << 3 | (i) << 5 | (e) << 6 | (q) << 8 | (a) << 11)
#define KIND(p) ((p) & 7)
#define CHANNEL(p) (((p) >> 3) & 3)
#define INC(p) (((p) >> 5) & 1)
#define EPOCH(p) (((p) >> 6) & 3)
#define PSN(p) (((p) >> 8) & 7)
#define ARG(p) ((p) >> 11)
/* The newest PSN a packet knows of: an ack speaks of base - 1. */
#define SPEAKS_OF(p) ((KIND(p) == DATA || KIND(p) == FENCE) -> PSN(p) : (PSN(p) + QM - 1) % QM)

#define PROBE 1  /* slot of an unsettled PSN: a probe, or MSG + message */
#define MSG 2

/* The sender's view of a message. ERR: completed with an error. */
#define WAIT 0
#define FLYING 1
#define DONE 2
#define ERR 3

byte s_epoch[C];
byte s_psn[C];                    /* oldest unsettled */
byte s_n[C];                      /* how many are unsettled */
byte slot[C * W];                 /* what they are, oldest first */
bit fencing[C];                   /* the path is failed and waits for its fence's answer */
bit unconfirmed[C];               /* no ack of this epoch yet (W5) */
byte probing[C];                  /* 0: no unanswered probe; k + 1: one, and k counted ones before it */
byte msg[NM];
bit s_inc, r_inc;

byte r_epoch[C];
bit closed[C];
byte base[C];
byte hist[C];
bit got[NM];                      /* written to memory */
#ifdef PIPE
short pending[C];                 /* between the check of its header and its commit */
#endif

#ifdef HASTY
/* The sender sends again what is not settled (W-FENCE-008 broken), so a packet may arrive twice. The N packets
 * are one message; its receiver adds up packets. */
byte count;
bit signalled, refused;
#endif

#ifdef EVIDENCE
byte avoid[NM];                   /* 1 + the channel that lost it last */
byte later[C];                    /* bit i: slot i was sent behind the other path's first unanswered probe */
bit evidence[C];                  /* such a packet was acked since */
#endif

/* Scratch, 0 between steps; x is the packet at hand. */
short x, y;
byte c, e, q, a, i, d, v;
inline clear_scratch() { y = 0; c = 0; e = 0; q = 0; a = 0; i = 0; d = 0; v = 0 }

#define FULL(ch) (s_n[ch] == W)
#define LAST_PSN(ch) ((s_psn[ch] + s_n[ch] + QM - 1) % QM)
#define TAIL_IS_PROBE(ch) (s_n[ch] > 0 && slot[(ch) * W + s_n[ch] - 1] == PROBE)
/* Behind every data packet one PSN stays free for a probe; counting the data alone does not do. */
#ifdef RESERVE_COUNTS_DATA
#define IS_DATA(ch, j) (slot[(ch) * W + (j)] >= MSG)
#define LEAVES_ROOM(ch) (!FULL(ch) && IS_DATA(ch, 0) + IS_DATA(ch, 1) + IS_DATA(ch, W - 1) < W - 1)
#else
#define LEAVES_ROOM(ch) (s_n[ch] < W - 1)
#endif
#ifdef NO_W5_DATA
#define CONFIRMED(ch) true
#else
#define CONFIRMED(ch) !unconfirmed[ch]
#endif
#define MAY_DATA(ch) (!fencing[ch] && CONFIRMED(ch) && LEAVES_ROOM(ch))
/* The last usable path is not failed (R8). */
#ifdef FAIL_LAST
#define NOT_LAST(ch) true
#else
#define NOT_LAST(ch) !fencing[OTHER(ch)]
#endif
#ifdef NO_W3
/* Every probe takes a PSN, so a full window cannot be probed. */
#define MAY_PROBE(ch) (!fencing[ch] && (s_n[ch] > 0 || unconfirmed[ch]) && !FULL(ch))
#define REPEATS(ch) 0
#else
/* An epoch that is fenced for an answer to its first probe, which may be forged, is opened all the same. */
#define OPENS(ch) (fencing[ch] && unconfirmed[ch] && TAIL_IS_PROBE(ch))
#ifdef FORGER
#define MAY_PROBE(ch) (OPENS(ch) || \
                       (!fencing[ch] && (s_n[ch] > 0 || unconfirmed[ch]) && (!FULL(ch) || TAIL_IS_PROBE(ch))))
#else
#define MAY_PROBE(ch) (!fencing[ch] && (s_n[ch] > 0 || unconfirmed[ch]) && (!FULL(ch) || TAIL_IS_PROBE(ch)))
#endif
#define REPEATS(ch) TAIL_IS_PROBE(ch)
#endif

/* What `spin -t` prints of a counter-example; nothing while Spin searches. m = -1: a probe. */
#define SAY_PACKET(p)                                                                                  \
  if                                                                                                   \
  :: KIND(p) == DATA -> printf("DATA c%d inc%d e%d psn%d m%d\n", CHANNEL(p), INC(p), EPOCH(p), PSN(p), ARG(p) - 1) \
  :: KIND(p) == ACK -> printf("ACK c%d inc%d e%d base%d hist%d\n", CHANNEL(p), INC(p), EPOCH(p), PSN(p), ARG(p)) \
  :: KIND(p) == FENCE -> printf("FENCE c%d inc%d e%d\n", CHANNEL(p), INC(p), EPOCH(p))                \
  :: KIND(p) == ANSWER -> printf("ANSWER c%d inc%d e%d base%d hist%d\n", CHANNEL(p), INC(p), EPOCH(p), PSN(p), ARG(p)) \
  fi

/* One more PSN of channel ch carries what; x is the packet. */
inline transmit(ch, what)
{
  slot[ch * W + s_n[ch]] = what;
  q = (s_psn[ch] + s_n[ch]) % QM;
#ifdef EVIDENCE
  if
  :: probing[OTHER(ch)] > 0 -> later[ch] = later[ch] | (1 << s_n[ch])
  :: else
  fi;
#endif
  s_n[ch]++;
  age_psn(ch, q); /* W11: what would be half the PSN space late is gone by now */
  x = PACK(DATA, ch, s_inc, s_epoch[ch], q, what - 1);
  printf("send "); SAY_PACKET(x)
}

inline send_data(ch, m)
{
  msg[m] = FLYING;
  transmit(ch, MSG + m)
}

/* A repeated probe with nothing sent behind it keeps its PSN (W3). */
inline send_probe(ch)
{
  if
  :: REPEATS(ch) ->
    x = PACK(DATA, ch, s_inc, s_epoch[ch], LAST_PSN(ch), 0);
    printf("again "); SAY_PACKET(x);
#ifdef EVIDENCE_FROM_REPEATS
    if
    :: probing[OTHER(ch)] > 0 -> later[ch] = later[ch] | (1 << (s_n[ch] - 1))
    :: else
    fi
#endif
  :: else -> transmit(ch, PROBE)
  fi
}

inline send_fence(ch)
{
  x = PACK(FENCE, ch, s_inc, s_epoch[ch], 0, 0);
  printf("send "); SAY_PACKET(x)
}

inline requeue(m, ch)
{
  if
  :: msg[m] == FLYING ->
    msg[m] = WAIT;
    printf("m%d back to the queue\n", m)
  :: else
  fi;
#ifdef EVIDENCE
  avoid[m] = ch + 1
#endif
}

/* Everything below the base in x is settled: bit set = delivered, clear = lost (R5). d = how many. */
inline settle(ch)
{
  i = 0;
  do
  :: i == d -> break
  :: else ->
    v = slot[ch * W + i];
    if
    :: (ARG(x) >> (d - 1 - i)) & 1 ->
      if
      :: v >= MSG ->
        assert(got[v - MSG]); /* complete implies delivered */
        if
        :: msg[v - MSG] == FLYING ->
          msg[v - MSG] = DONE;
          printf("m%d done\n", v - MSG)
        :: else
        fi
      :: else
      fi;
#ifdef EVIDENCE
      if
      :: (later[ch] >> i) & 1 -> evidence[OTHER(ch)] = 1
      :: else
      fi
#endif
    :: else ->
      if
      :: v >= MSG -> requeue(v - MSG, ch)
      :: else
      fi
    fi;
    i++
  od;
  i = 0;
  do
  :: i == W -> break
  :: else ->
    if
    :: i + d < s_n[ch] -> slot[ch * W + i] = slot[ch * W + i + d]
    :: else -> slot[ch * W + i] = 0
    fi;
    i++
  od;
  s_n[ch] = s_n[ch] - d;
  if
  :: d > 0 -> probing[ch] = 0
  :: else
  fi;
#ifdef EVIDENCE
  later[ch] = later[ch] >> d;
  if
  :: d > 0 -> evidence[ch] = 0; later[OTHER(ch)] = 0
  :: else
  fi;
#endif
  s_psn[ch] = (s_psn[ch] + d) % QM;
#ifdef ROTATE
  /* Only differences of PSNs matter: renumber, so that states alike are one state. */
  rotate_psn(ch, d)
#endif
}

inline forget_unsettled(ch)
{
  i = 0;
  do
  :: i == W -> break
  :: else ->
    if
    :: slot[ch * W + i] >= MSG -> requeue(slot[ch * W + i] - MSG, ch)
    :: else
    fi;
    slot[ch * W + i] = 0;
    i++
  od;
  s_n[ch] = 0;
  s_psn[ch] = 0;
  probing[ch] = 0;
#ifdef EVIDENCE
  later[ch] = 0;
  later[OTHER(ch)] = 0;
  evidence[ch] = 0
#endif
}

/* Behind the fence's answer: a new epoch, PSN 0; what was not got goes back to the queue (R7). */
inline next_epoch(ch)
{
  forget_unsettled(ch);
  fencing[ch] = 0;
#ifndef NO_W5
  unconfirmed[ch] = 1;
#endif
  s_epoch[ch] = NEXT(s_epoch[ch]);
#ifdef NO_W6
  /* One epoch for both directions: this node now expects it from the peer, too. */
  r_epoch[REVERSE(ch)] = s_epoch[ch];
  closed[REVERSE(ch)] = 0;
  base[REVERSE(ch)] = 0;
  hist[REVERSE(ch)] = 0;
#endif
  printf("c%d: sender's epoch is now %d\n", ch, s_epoch[ch]);
  age_epoch(ch) /* W4: what would be mistaken for a later epoch is gone by now */
}

inline take_ack()
{
  d = (PSN(x) + QM - s_psn[c]) % QM;
  if
  :: INC(x) != s_inc || e != s_epoch[c] || fencing[c] || d > s_n[c] -> skip
  :: else -> unconfirmed[c] = 0; settle(c)
  fi;
  x = 0
}

inline take_answer()
{
  d = (PSN(x) + QM - s_psn[c]) % QM;
  if
#ifdef NO_W2_ANSWER
  :: INC(x) != s_inc || !fencing[c] || d > s_n[c] -> skip
#elif defined(NO_ASKED)
  /* Asked for or not, it is believed. */
  :: INC(x) != s_inc || e != s_epoch[c] || unconfirmed[c] || d > s_n[c] -> skip
#elif !defined(FORGER)
  :: INC(x) != s_inc || e != s_epoch[c] || !fencing[c] || d > s_n[c] -> skip
#else
  :: INC(x) != s_inc || e != s_epoch[c] || d > s_n[c] -> skip
  /* To a probe it is a reason to ask with a fence, and settles nothing. */
  :: INC(x) == s_inc && e == s_epoch[c] && d <= s_n[c] && !fencing[c] ->
    if
#ifdef ONLY_CONFIRMED
    :: TAIL_IS_PROBE(c) && !unconfirmed[c] ->
#else
    :: TAIL_IS_PROBE(c) ->
#endif
      fencing[c] = 1;
      printf("an answer to a probe: fence c%d\n", c)
    :: else
    fi
#endif
  :: else -> settle(c); next_epoch(c)
  fi;
  x = 0
}

#ifdef HASTY
#define ALL_THERE (got[0] && got[N - 1])
inline write(m)
{
  if
  :: signalled || refused -> hist[c] = hist[c] & (-2) /* of a message that is over: settled as lost */
#ifndef NO_COVER
  /* As many packets as it has, but some came twice and others never (W-MSG-014). */
  :: !signalled && !refused && count == N - 1 && !((got[0] || m == 0) && (got[N - 1] || m == N - 1)) ->
    refused = 1;
    hist[c] = hist[c] & (-2);
    printf("m%d refused\n", m)
#endif
  :: else ->
    got[m] = 1;
    count++;
    printf("m%d written\n", m);
    if
    :: count == N ->
      signalled = 1;
      assert(ALL_THERE) /* a signal says that the message is there */
    :: else
    fi
  fi
}
#else
inline write(m)
{
  assert(!got[m]);        /* never twice */
  assert(msg[m] != ERR);  /* never into a buffer that an error gave back (W8, W9) */
  got[m] = 1;
  printf("m%d written\n", m)
}
#endif

/* Base and history move over PSN q. */
inline advance()
{
  hist[c] = ((hist[c] << (((q + QM - base[c]) % QM) + 1)) | 1) & ((1 << W) - 1);
  base[c] = (q + 1) % QM
}

inline open_epoch()
{
  printf("c%d: receiver opens epoch %d\n", c, e);
  r_epoch[c] = e;
  closed[c] = 0;
  base[c] = 0;
  hist[c] = 0;
#ifdef NO_W6
  s_epoch[REVERSE(c)] = e;
  forget_unsettled(REVERSE(c));
  fencing[REVERSE(c)] = 0
#endif
}

#define ACCEPTABLE (!closed[c] && e == r_epoch[c] && (q + QM - base[c]) % QM < QM / 2)

/* A data packet or a probe arrives. Its answer, if it is owed one, is in x. */
inline take_data()
{
  q = PSN(x);
  a = ARG(x);
  x = 0;
  if
#ifndef NO_W9
  :: INC(y) != r_inc -> skip
#endif
  :: else ->
    if
    :: closed[c] && e == NEXT(r_epoch[c]) -> open_epoch()
    :: else
    fi;
    if
    :: ACCEPTABLE ->
#ifdef PIPE
      /* Committed later; a full pipeline holds the packet up no longer than a lost one. */
      if
      :: pending[c] == 0 ->
        pending[c] = y;
        printf("passes its check, not committed\n");
#ifdef NO_W7_EARLY_ACK
        advance()
#endif
      :: else
      fi
#else
      advance();
      if
      :: a > 0 -> write(a - 1)
      :: else
      fi;
      owe_ack(c)
#endif
    :: else ->
#if defined(FORGER) && !defined(NO_CLOSED_ANSWER)
      /* A probe of the closed epoch asks what its fence asks. */
      if
      :: a == 0 && e == r_epoch[c] && closed[c] -> x = PACK(ANSWER, c, r_inc, e, base[c], hist[c])
      :: else
      fi;
#endif
#ifndef NO_W3_STALE
      if
      :: a == 0 && e == r_epoch[c] && !closed[c] -> owe_ack(c) /* dropped, but answered (W3) */
      :: else
      fi
#endif
    fi
  fi
}

#ifdef PIPE
/* The write is ordered: check again, then move base and history (W7). */
inline commit(ch)
{
  c = ch;
  y = pending[c];
  printf("commit "); SAY_PACKET(y);
  pending[c] = 0;
  e = EPOCH(y);
  q = PSN(y);
  a = ARG(y);
  if
#if defined(NO_W7) || defined(NO_W7_EARLY_ACK)
  :: true ->
#else
  :: ACCEPTABLE && INC(y) == r_inc ->
#endif
#ifndef NO_W7_EARLY_ACK
    advance();
#endif
    if
    :: a > 0 -> write(a - 1)
    :: else
    fi
#if !defined(NO_W7) && !defined(NO_W7_EARLY_ACK)
  :: else
#endif
  fi
}
#endif

/* Closing is idempotent; the answer is made from what was kept (W2). */
inline take_fence()
{
  x = 0;
  if
#ifndef NO_W9
  :: INC(y) != r_inc -> skip
#endif
  :: else ->
#ifdef FENCE_OPENS
    /* The alternative to W5 (docs/formal.md): the fence of an epoch never seen opens and closes it. */
    if
    :: closed[c] && e == NEXT(r_epoch[c]) -> open_epoch()
    :: else
    fi;
#endif
    if
    :: e == r_epoch[c] ->
      closed[c] = 1;
      x = PACK(ANSWER, c, r_inc, e, base[c], hist[c]);
#ifdef NO_W2
      /* Nothing is kept: the next epoch is open at once, and a repeated fence is answered from it. */
      r_epoch[c] = NEXT(e);
      closed[c] = 0;
      base[c] = 0;
      hist[c] = 0;
    :: e != r_epoch[c] && !closed[c] && NEXT(e) == r_epoch[c] ->
      x = PACK(ANSWER, c, r_inc, e, base[c], hist[c])
#endif
    :: else
    fi
  fi
}

/* Packet x arrives where it is for. A reply is left in x, else x is 0. */
inline handle()
{
  y = x;
  c = CHANNEL(x);
  e = EPOCH(x);
  printf("arrives "); SAY_PACKET(x);
  if
  :: KIND(x) == DATA -> take_data()
  :: KIND(x) == ACK -> take_ack()
  :: KIND(x) == FENCE -> take_fence()
  :: KIND(x) == ANSWER -> take_answer()
  fi
}

/* What an ack of channel ch says. */
#define STATE_OF(ch) PACK(ACK, ch, r_inc, r_epoch[ch], base[ch], hist[ch])
