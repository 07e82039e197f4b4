# SPDX-License-Identifier: Apache-2.0
"""The reducer's write engine, rotators and places of elements, and the arbiter, proved; each mistake breaks what it should.

prove.py has the proofs; docs/formal.md tells what they mean.
"""
import unittest

import prove

NEEDS = ["wire_gen"]
PROOFS = {proof.name: proof for proof in prove.PROOFS}


class Case(unittest.TestCase):
    def check(self, *names):
        for name in names:
            with self.subTest(name):
                self.assertEqual(prove.problem(PROOFS[name], prove.execute(PROOFS[name])), "")


class Write(Case):
    def test_exactly_the_bytes_of_a_job_are_written_once_by_bursts_within_pages(self):
        self.check("write")


class Windows(Case):
    def test_a_window_is_the_bytes_of_the_source_from_its_place_on(self):
        self.check("rotator")

    def test_every_element_goes_to_its_lane_and_its_place_in_the_result(self):
        self.check("places")


class Arbiter(Case):
    def test_who_asks_is_served_within_as_many_grants_as_there_are_requesters(self):
        self.check("arbiter")

    def test_mistakes_are_found(self):
        self.check("arbiter-fixed", "arbiter-itself", "arbiter-idle", "arbiter-two")


class Mistakes(Case):
    """Each must break the assertion that it names, in a run from reset."""

    def test_a_byte_too_many_at_the_front(self):
        self.check("write-first-byte")

    def test_a_byte_too_few_at_the_end(self):
        self.check("write-last-byte")

    def test_a_job_that_ends_a_beat_early(self):
        self.check("write-early")

    def test_an_address_that_runs_away(self):
        self.check("write-address")

    def test_a_burst_across_a_page(self):
        self.check("write-page")

    def test_a_burst_without_its_last_beat(self):
        self.check("write-wlast")

    def test_a_write_behind_an_error(self):
        self.check("write-read-error", "write-error")

    def test_an_error_that_outlives_its_job(self):
        self.check("write-error-stays")

    def test_data_ahead_of_its_address(self):
        self.check("write-data-early")

    def test_a_byte_of_the_wrong_beat(self):
        self.check("rotator-merge", "rotator-whole", "rotator-before")

    def test_a_turn_too_short(self):
        self.check("rotator-turn")

    def test_an_element_in_the_wrong_lane(self):
        self.check("places-spread")

    def test_a_lane_that_should_be_live(self):
        self.check("places-live")

    def test_a_result_in_the_wrong_place(self):
        self.check("places-gather", "places-others")


class Runner(Case):
    def test_every_proof_is_in_a_test(self):
        """A proof that no test names would never be made; but rotator-others, left to `make formal`."""
        with open(__file__, encoding="utf-8") as handle:
            text = handle.read()
        self.assertEqual([name for name in PROOFS if f'"{name}"' not in text], ["rotator" + "-others"])

    def test_only_a_proof_counts_as_one(self):
        base = "Base case for induction length 1 proven.\n"
        failed = "Induction step failed. Incrementing induction length.\n"
        self.assertEqual(prove.verdict(base + "Induction step proven: SUCCESS!\n"), prove.PROVED)
        self.assertEqual(prove.verdict(base + failed), "not inductive")
        self.assertEqual(prove.verdict(base + base + "SAT temporal induction proof finished - model found for base "
                                       "case: FAIL!\n"), "broken in cycle 3")
        self.assertTrue(prove.verdict("ERROR: no such module\n").startswith("did not end"))
        self.assertNotEqual(prove.problem(PROOFS["write-page"], "not inductive"), "")

    def test_an_edit_that_does_not_fit_is_told(self):
        with self.assertRaisesRegex(ValueError, "0 times"):
            prove.edited((("rtl/nmc/weft_nmc_write.sv", "no such text", ""),))
