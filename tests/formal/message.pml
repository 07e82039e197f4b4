/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of several packets, completed in order at both ends, without end. Below is what the other
 * models prove: a packet arrives at most once, in any order; the sender learns later of each whether it
 * arrived; a lost one is sent again. Message numbers count modulo M; OPEN messages may be open.
 */
#ifndef OPEN
#define OPEN 2
#endif
#define M 4    /* message numbers */
#define MAX 2  /* packets a message; an empty message takes one packet of 0 bytes */

/* What became of packet k of a message. */
#define ABSENT 0   /* the message has no such packet */
#define QUEUED 1
#define SENT 2
#define WRITING 3  /* accepted by the receiver, not yet in memory */
#define WRITTEN 4  /* and counted */
#define KNOWN 5    /* the sender knows */

byte packet[M * MAX];
byte bytes[M];     /* of a message, in packets: 0, 1 or 2 */
bit begun[M];      /* the sender has it */
byte s_next;       /* the next message to begin */
byte s_oldest;     /* the oldest not completed at the sender */
byte r_count[OPEN]; /* bytes that came, by message number modulo OPEN */
bit r_seen[OPEN];  /* a packet of it came, so its length is known */
byte r_oldest;     /* the oldest not completed at the receiver */
byte m, k, i, n;

inline clear_scratch() { m = 0; k = 0; i = 0; n = 0 }

#define AT_SENDER (s_oldest != s_next)
#define IN_FLIGHT(j) (begun[j] && (packet[(j) * MAX] == QUEUED || packet[(j) * MAX] == SENT || \
                                   packet[(j) * MAX + 1] == QUEUED || packet[(j) * MAX + 1] == SENT))
#define NOT_IN_MEMORY(p) ((p) == QUEUED || (p) == SENT || (p) == WRITING)
#define NOT_KNOWN(p) ((p) != ABSENT && (p) != KNOWN)

/* The window: how many messages may be open. */
#ifdef NO_WINDOW
/* Counted, not ordered: a message that is all known frees its place before its elders are. */
#define MAY_BEGIN (!begun[s_next] && (IN_FLIGHT(0) + IN_FLIGHT(1) + IN_FLIGHT(2) + IN_FLIGHT(3)) < OPEN)
#else
#define MAY_BEGIN ((s_next + M - s_oldest) % M < OPEN)
#endif

/* All packets of messages first..last (modulo M) are in memory. */
inline all_in_memory(first, last)
{
  i = first;
  do
  :: true ->
    assert(!NOT_IN_MEMORY(packet[i * MAX]) && !NOT_IN_MEMORY(packet[i * MAX + 1]));
    if
    :: i == last -> break
    :: else -> i = (i + 1) % M
    fi
  od
}

inline signal(j)
{
  all_in_memory(r_oldest, j);
  printf("message %d completes at the receiver\n", j);
  r_count[j % OPEN] = 0;
  r_seen[j % OPEN] = 0;
  bytes[j] = 0;
  r_oldest = (j + 1) % M
}

inline count(j, p)
{
  r_seen[j % OPEN] = 1;
  if
  :: bytes[j] > 0 -> r_count[j % OPEN]++
  :: else
  fi
}

#define PACKET_STEPS(j, p)                                                                            \
  :: packet[j * MAX + p] == QUEUED -> d_step { packet[j * MAX + p] = SENT; printf("send %d.%d\n", j, p) } \
  :: packet[j * MAX + p] == SENT -> d_step { packet[j * MAX + p] = QUEUED; printf("lost %d.%d\n", j, p) } \
  :: packet[j * MAX + p] == SENT -> d_step { printf("arrives %d.%d\n", j, p); ARRIVE(j, p) }          \
  :: packet[j * MAX + p] == WRITING -> d_step { printf("in memory %d.%d\n", j, p); COMMIT(j, p) }     \
  :: packet[j * MAX + p] == WRITTEN -> packet[j * MAX + p] = KNOWN

/* What is counted may complete its message, and that may complete younger ones. */
inline complete(j)
{
#ifdef NO_ORDER
  if
  :: r_count[j % OPEN] == bytes[j] -> signal(j)
  :: else
  fi
#else
  do
  :: r_seen[r_oldest % OPEN] && r_count[r_oldest % OPEN] == bytes[r_oldest] -> signal(r_oldest)
  :: else -> break
  od
#endif
}

#ifdef COUNT_EARLY
#define ARRIVE(j, p) packet[j * MAX + p] = WRITING; count(j, p); complete(j); clear_scratch()
#define COMMIT(j, p) packet[j * MAX + p] = WRITTEN
#else
#define ARRIVE(j, p) packet[j * MAX + p] = WRITING
#ifdef SIGNAL_LATE
/* Counted, and so acked, before the message is completed and its counter free again. */
#define COMMIT(j, p) packet[j * MAX + p] = WRITTEN; count(j, p); clear_scratch()
#else
#define COMMIT(j, p) packet[j * MAX + p] = WRITTEN; count(j, p); complete(j); clear_scratch()
#endif
#endif

inline begin(length)
{
  m = s_next;
  begun[m] = 1;
  bytes[m] = length;
  packet[m * MAX] = QUEUED;
  packet[m * MAX + 1] = (length == 2 -> QUEUED : ABSENT);
  printf("message %d of %d packets begins\n", m, length);
  s_next = (s_next + 1) % M;
  clear_scratch()
}

active proctype world()
{
  do
  :: MAY_BEGIN -> d_step { begin(0) }
  :: MAY_BEGIN -> d_step { begin(1) }
  :: MAY_BEGIN -> d_step { begin(2) }
  PACKET_STEPS(0, 0)
  PACKET_STEPS(0, 1)
  PACKET_STEPS(1, 0)
  PACKET_STEPS(1, 1)
  PACKET_STEPS(2, 0)
  PACKET_STEPS(2, 1)
  PACKET_STEPS(3, 0)
  PACKET_STEPS(3, 1)
#ifdef SIGNAL_LATE
  :: r_seen[r_oldest % OPEN] && r_count[r_oldest % OPEN] == bytes[r_oldest] -> d_step { complete(r_oldest); clear_scratch() }
#endif
  /* In posting order at the sender: the oldest, when all of it is known to have arrived. */
  :: AT_SENDER && !NOT_KNOWN(packet[s_oldest * MAX]) && !NOT_KNOWN(packet[s_oldest * MAX + 1]) -> d_step {
      printf("message %d completes at the sender\n", s_oldest);
      packet[s_oldest * MAX] = ABSENT;
      packet[s_oldest * MAX + 1] = ABSENT;
      begun[s_oldest] = 0;
      s_oldest = (s_oldest + 1) % M
    }
  od
}
