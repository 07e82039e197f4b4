# SPDX-License-Identifier: Apache-2.0
"""The transport's reliability, model-checked: it holds, and with any one correction taken out it does not.

formal.py has the runs; docs/formal.md tells what they mean, and each counter-example.
"""
import unittest

import formal

RUNS = {run.name: run for run in formal.QUICK}


class Case(unittest.TestCase):
    def check(self, *names):
        for name in names:
            with self.subTest(name):
                self.assertEqual(formal.problem(RUNS[name], formal.execute(RUNS[name])), "")


class Models(Case):
    def test_exactly_once_on_two_paths_with_late_and_doubled_packets(self):
        self.check("two-paths", "two-paths-late3")

    def test_a_pipelined_receiver_and_a_connection_that_gives_up(self):
        self.check("pipelined-give-up")

    def test_endless_messages_go_on_while_one_path_works(self):
        self.check("progress", "no-deadlock")

    def test_a_path_is_failed_only_when_another_contradicts_it(self):
        self.check("evidence")

    def test_a_path_that_reorders_within_its_distance(self):
        self.check("reorder-1", "reorder-2", "from-highest")

    def test_messages_of_several_packets_complete_in_order(self):
        self.check("messages")

    def test_credits_do_not_dry_up(self):
        self.check("credits", "credits-progress")

    def test_a_connection_of_two_ports_fails_with_fences_and_without(self):
        self.check("ports", "ports-no-fence")

    def test_a_hasty_sender_raises_no_signal_over_a_hole(self):
        self.check("hasty")

    def test_forged_fences_and_answers_do_no_harm(self):
        self.check("forger")

    def test_a_fence_that_opens_its_epoch_is_as_good_as_W5(self):
        self.check("fence-opens", "fence-opens-progress")


class Mutations(Case):
    """Without a correction Spin must find an error, and of the kind that is expected."""

    def test_without_W1_a_fence_that_needs_its_carrier_never_leaves(self):
        self.check("NO_W1")

    def test_without_W2_a_repeated_fence_is_answered_from_nothing_or_a_late_answer_is_taken(self):
        self.check("NO_W2", "NO_W2_ANSWER")

    def test_without_W3_a_full_window_cannot_be_probed_and_a_stale_probe_gets_no_answer(self):
        self.check("NO_W3", "NO_W3_STALE")

    def test_without_W4_a_packet_outlives_its_epoch(self):
        self.check("NO_W4", "NO_W4-2bit", "W4_ONE_MORE")

    def test_without_W5_what_is_sent_in_an_epoch_never_opened_is_stuck(self):
        self.check("NO_W5", "NO_W5_DATA")

    def test_without_W6_one_fence_moves_both_directions(self):
        self.check("NO_W6")

    def test_without_W7_a_packet_commits_behind_its_fence_or_is_acked_before(self):
        self.check("NO_W7", "NO_W7_EARLY_ACK")

    def test_without_W8_an_error_gives_back_a_buffer_too_early(self):
        self.check("NO_W8")

    def test_a_port_that_gives_up_before_all_have_stopped_has_a_packet_written_twice_or_after_the_error(self):
        self.check("FLUSH_EARLY", "FLUSH_EARLY-fence", "NO_STOP_ALL", "NO_STOP_ALL-fence")

    def test_a_count_alone_raises_a_signal_over_a_hole(self):
        self.check("NO_COVER")

    def test_an_answer_that_is_believed_unasked_or_ignored_where_it_is_true_ends_a_path(self):
        self.check("NO_ASKED", "NO_ASKED-progress", "NO_CLOSED_ANSWER", "ONLY_CONFIRMED", "NO_OPENING")

    def test_without_W9_a_restarted_receiver_takes_what_is_older(self):
        self.check("NO_W9")

    def test_without_W10_a_hole_stays_open_or_the_history_is_too_short(self):
        self.check("NO_W10", "NO_W10_SHORT")

    def test_without_W11_a_late_PSN_is_new_again(self):
        self.check("NO_W11", "NO_W11-3bit")

    def test_without_evidence_a_blackout_fails_paths(self):
        self.check("NO_EVIDENCE", "EVIDENCE_FROM_REPEATS")

    def test_without_a_scout_or_with_a_moving_baseline_a_dead_path_is_never_failed(self):
        self.check("NO_SCOUT", "EVIDENCE_RESET")

    def test_resending_where_it_was_lost_livelocks(self):
        self.check("RESEND_SAME")

    def test_a_reserve_that_counts_only_data_is_none(self):
        self.check("RESERVE_COUNTS_DATA")

    def test_signals_without_window_order_or_commit_come_too_early(self):
        self.check("NO_WINDOW", "NO_ORDER", "COUNT_EARLY", "SIGNAL_LATE")

    def test_credits_that_are_told_once_or_as_a_difference_fail(self):
        self.check("NO_CREDIT_MESSAGE", "CREDIT_ONCE", "COUNT_FREE")


class Runner(Case):
    def test_every_run_is_in_a_test_of_its_own(self):
        """A run that no test names would never be made."""
        with open(__file__, encoding="utf-8") as handle:
            text = handle.read()
        self.assertEqual([name for name in RUNS if f'"{name}"' not in text], [])

    def test_a_wrong_expectation_is_noticed(self):
        found = formal.Result("non-progress cycle", True, 1, 1, 1.0, "")
        cut_short = formal.Result("", False, 1, 1, 1.0, "")
        self.assertIn("expected", formal.problem(RUNS["NO_W2"], found))
        self.assertIn("found", formal.problem(RUNS["two-paths"], found))
        self.assertIn("did not end", formal.problem(RUNS["two-paths"], cut_short))


