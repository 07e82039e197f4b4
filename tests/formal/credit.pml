/* SPDX-License-Identifier: Apache-2.0
 *
 * Credits of SEND, without end. The receiver's limit (how many SENDs it has had buffers for, counted
 * from the start, modulo M) stands in every ack; acks are lost or late. When the last ack told of no
 * free credit and buffers are posted, a CREDIT message tells so, which is resent until it is acked.
 * SENDs themselves are reliable here: they arrive once, in order of their completion.
 */
#define BUFFERS 2
#define M 8

byte sent, limit = BUFFERS; /* of the sender: SENDs so far, limit known */
byte taken, posted = BUFFERS; /* of the receiver: SENDs consumed, buffers ever posted */
byte flying;           /* SENDs under way */
bit unheard;           /* the last ack was lost */
byte late_limit = M;   /* a late ack; M: none */
byte told = BUFFERS;   /* the limit last told, if it got through or not */
byte credit = M;       /* CREDIT message being sent: its limit; M: none */
byte d;

#define FREE(a, b) (((a) + M - (b)) % M)

inline learn(value)
{
#ifdef COUNT_FREE
  /* A number of free buffers instead of a running count. */
  limit = (sent + value) % M
#else
  /* Never backwards: an old ack says less. */
  d = FREE(value, limit);
  if
  :: d <= BUFFERS -> limit = value
  :: else
  fi
#endif
}

#ifdef COUNT_FREE
#define SAYS FREE(posted, taken)
#else
#define SAYS posted
#endif

active proctype sender()
{
  do
  :: d_step { sent != limit -> sent = (sent + 1) % M; flying++; printf("send, %d flying\n", flying) }
  :: atomic {
      flying > 0 ->
      d_step {
        flying--;
        assert(posted != taken); /* a buffer waits for it */
        taken = (taken + 1) % M;
        printf("taken; ack says %d of %d posted\n", posted, taken);
        told = posted
      };
      if /* its ack */
      :: d_step { learn(SAYS); d = 0 }
      :: unheard = 1; printf("ack lost\n")
      :: late_limit == M -> late_limit = SAYS; unheard = 1; printf("ack late\n")
      fi
    };
progress:
    skip
  /* What is unsettled is probed until an ack comes, and that one says the limit of its own time. */
  :: d_step { unheard && !flying -> told = posted; learn(SAYS); unheard = 0; d = 0 }
  :: d_step { late_limit != M -> printf("late ack arrives: %d\n", late_limit); learn(late_limit); late_limit = M; d = 0 }
#ifndef CREDIT_ONCE
  :: d_step { credit != M -> learn(credit); credit = M; d = 0 } /* got through at last */
#else
  :: d_step { credit != M -> learn(credit); credit = M; d = 0 }
  :: credit != M -> credit = M; printf("CREDIT lost\n")                               /* lost, and nobody resends it */
#endif
  od
}

active proctype receiver()
{
  do
  :: d_step { FREE(posted, taken) < BUFFERS ->
      posted = (posted + 1) % M;
      printf("buffer posted: %d\n", posted);
      if /* nothing is so late that its count has wrapped */
      :: late_limit != M && FREE(posted, late_limit) >= M - BUFFERS -> late_limit = M
      :: else
      fi;
      if /* a resent CREDIT carries the limit of the day */
      :: credit != M -> credit = SAYS
      :: else
      fi
    }
#ifndef NO_CREDIT_MESSAGE
  /* The sender may stand still: what it was told last is used up. */
  :: d_step { credit == M && posted != told && told == taken -> credit = SAYS; told = posted; printf("CREDIT %d\n", credit) }
#endif
  od
}
