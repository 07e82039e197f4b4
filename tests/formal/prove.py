# SPDX-License-Identifier: Apache-2.0
"""Proves the properties of rtl/ beside this file, by induction; what they say is in docs/formal.md.

    prove.py             every proof and every mistake, as a table (part of make formal)
    prove.py NAME...     these

A proof is a module of assumptions and assertions around a block. It is proved for any length of time:
the assertions hold from reset on, and after one more cycle if they held in the one before; there is no
bound but the size of types that `edits` narrows. A mistake is an edit of the block. It counts as found
only if a run from reset exists that breaks the assertion it names, all others taken out: that induction
fails proves nothing.
"""
import dataclasses
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
sys.path.insert(0, os.path.join(ROOT, "sw/tools"))
import flist  # noqa: E402

PROVED = "proved"
LIMIT = 600  # seconds of one solver call


@dataclasses.dataclass(frozen=True)
class Proof:
    name: str
    top: str
    edits: tuple = ()    # (file, old, new), `old` stands there exactly once
    breaks: str = ""     # with a mistake in `edits`: the assertion that it must break
    steps: int = 1       # with a mistake: cycles from reset that are searched
    parts: tuple = ()    # groups of assertions, each a search of its own on gates, with those of `base`
    base: tuple = ()


def edited(edits):
    """Texts of the files that `edits` changes; ValueError if one does not fit."""
    texts = {}
    for name, old, new in edits:
        if name not in texts:
            with open(os.path.join(ROOT, name), encoding="utf-8") as handle:
                texts[name] = handle.read()
        count = texts[name].count(old)
        if count != 1:
            raise ValueError(f"{name} has {count} times, expected once: {old!r}")
        texts[name] = texts[name].replace(old, new)
    return texts


def sources(proof, folder):
    """The files of the reducer (with the common ones), those that are edited as copies in `folder`, and the proof."""
    found = flist.expand(["rtl/nmc/nmc.f"], BUILD)
    for name, text in edited(proof.edits).items():
        copy = os.path.join(folder, os.path.basename(name))
        with open(copy, "w", encoding="utf-8") as handle:
            handle.write(text)
        found.files[found.files.index(os.path.join(ROOT, name))] = copy
    found.files.append(os.path.join(HERE, "rtl", proof.top + ".sv"))
    return found


def child(proof, folder):
    """In a process of its own, because Yosys prints and may end it: reads the design and searches."""
    import slang  # needs pyosys, which prints while it loads
    design = slang.read(proof.top, sources(proof, folder), ignore_assertions=False)
    only = (f"select -assert-count 1 t:$assert c:{proof.breaks} %i",
            f"delete t:$assert c:{proof.breaks} %d", "opt_clean") if proof.breaks else ()
    # There is one clock and nothing else, so an assertion at its edge is one on the state before it.
    for command in ("proc", "flatten", "setparam -set TRG_ENABLE 0 t:$check", "chformal -lower", *only, "opt -full",
                    "memory_map -formal", "setundef -undriven -anyseq", "opt -full"):
        design.run_pass(command)
    search = "-tempinduct-baseonly " if proof.breaks else ""
    solve = f"sat -tempinduct {search}-prove-asserts -set-assumes -maxsteps {proof.steps} -timeout {LIMIT}"
    if not proof.parts:
        return design.run_pass(solve)
    # As gates: else a register of which a part asks for some bits would stay whole.
    for command in ("simplemap", "splitnets", "opt -full", "design -save whole"):
        design.run_pass(command)
    for part in proof.parts:
        kept = (part, *proof.base)
        for command in ("design -load whole", *(f"select -assert-min 1 t:$assert c:{name} %i" for name in kept),
                        "delete t:$assert " + " ".join(f"c:{name} %d" for name in kept), "opt_clean", solve):
            design.run_pass(command)
    return None


def execute(proof):
    """What came out: PROVED, or in words why not."""
    folder = os.path.join(BUILD, "formal", proof.name)
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", proof.name], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as handle:
        handle.write(done.stdout)
    return verdict(done.stdout, len(proof.parts) or 1)


def verdict(log, parts=1):
    if all(log.count(line) == parts for line in
           ("Induction step proven: SUCCESS!", "Base case for induction length 1 proven.")):
        return PROVED
    cycle = len(re.findall(r"^Base case for induction length \d+ proven\.", log, re.M)) + 1
    if "model found for base case: FAIL!" in log:
        return f"broken in cycle {cycle}"
    if "Induction step failed." in log:
        return "not inductive"
    if "Reached maximum number of time steps" in log:
        return "nothing found"
    return "did not end: " + (log.strip().splitlines() or ["no output"])[-1]


def problem(proof, result):
    """Why the result is not what was expected, or ""."""
    if proof.breaks:
        return "" if result.startswith("broken in cycle") else f"expected a run that breaks it, got '{result}'"
    return "" if result == PROVED else f"expected '{PROVED}', got '{result}'"


# -- Small types: what the write engine does with addresses, lengths and strobes depends on their sizes only
# through these. A beat has 4 bytes, a page 4 beats, a job up to 7 beats at any of 16 beat addresses.
PACKAGE = "rtl/nmc/weft_nmc_pkg.sv"
WRITE = "rtl/nmc/weft_nmc_write.sv"
NARROW = (
    ("rtl/pkg/weft_pkg.sv", "NmcW = 1024;", "NmcW = 32;"),
    (PACKAGE, "BeatAddrW = 64 - OffsW;", "BeatAddrW = 4;"),
    (PACKAGE, "PageW = 12 - OffsW;", "PageW = 2;"),
    (PACKAGE, "LenW = 33 - OffsW;", "LenW = 3;"),
    (PACKAGE, "NmcJobs = 32;", "NmcJobs = 2;"),
    (PACKAGE, "JobW = $clog2(NmcJobs);", "JobW = 14;"),
    (WRITE, "9'(m_axi_awaddr[11:OffsW])", "9'(m_axi_awaddr[OffsW+:PageW])"),
)


def write_mistake(name, breaks, old, new):
    return Proof(name, "weft_proof_write", NARROW + ((WRITE, old, new),), breaks, steps=14)


ROT = "rtl/nmc/weft_nmc_rot.sv"


def rot_mistake(name, breaks, old, new):
    return Proof(name, "weft_proof_rot", ((ROT, old, new),), breaks, steps=5, parts=(breaks,))


ARB = "rtl/common/weft_rr_arb.sv"


def arb_mistake(name, breaks, old, new):
    return Proof(name, "weft_proof_arb", ((ARB, old, new),), breaks, steps=14)


def place_mistake(name, breaks, block, old, new):
    return Proof(name, "weft_proof_places", ((f"rtl/nmc/weft_nmc_{block}.sv", old, new),), breaks, steps=3)


PROOFS = [
    # Bytes move whole. The tests prove one bit of them, since each is a search of half a minute.
    Proof("rotator", "weft_proof_rot", parts=("gen_bit?0?.*",), base=("StepIsKnown",)),
    Proof("rotator-others", "weft_proof_rot", parts=tuple(f"gen_bit?{bit}?.*" for bit in range(1, 8)),
          base=("StepIsKnown",)),
    rot_mistake("rotator-merge", "gen_bit?5?.WindowIsItsBytes", "4'(w) < at[5:2] ||", "4'(w) <= at[5:2] ||"),
    rot_mistake("rotator-whole", "gen_bit?0?.WindowIsItsBytes", "{HalfW{at[6] || at == '0}}", "{HalfW{at[6]}}"),
    rot_mistake("rotator-turn", "gen_bit?7?.WindowIsItsBytes", "{x[383:0], x[NmcW-1:384]}",
                "{x[255:0], x[NmcW-1:256]}"),
    rot_mistake("rotator-before", "gen_bit?0?.WindowIsItsBytes", "if (push_i) older_q", "if (emit_i) older_q"),
    Proof("arbiter", "weft_proof_arb"),
    arb_mistake("arbiter-fixed", "gen_size?2?.u_of.gen_requester?2?.ServedInTime", "else if (take_i) behind_q <= behind;", ""),
    arb_mistake("arbiter-itself", "gen_size?5?.u_of.gen_requester?11?.ServedInTime", "behind[i] = lower;",
                "behind[i] = lower || gnt_o[i];"),
    arb_mistake("arbiter-idle", "gen_size?3?.u_of.NobodyWaitsIdle", "(first != '0) ? first : req_i", "first"),
    arb_mistake("arbiter-two", "gen_size?3?.u_of.OneAsked", "chosen[i] && !lower", "chosen[i]"),
    Proof("places", "weft_proof_places"),
    place_mistake("places-spread", "gen_shape?2?.gen_size?1?.Spread", "pkg", "y[64*i+:32] = x[32*i+:32]",
                  "y[64*i+32+:32] = x[32*i+:32]"),
    place_mistake("places-live", "WordsLive", "live", "OffsW'(i) <= hi_i", "OffsW'(i) < hi_i"),
    place_mistake("places-gather", "gen_shape?1?.gen_size?0?.Gather", "gather", "{4{y[NmcW/4-1:0]}}",
                  "{2{y[NmcW/2-1:0]}}"),
    place_mistake("places-others", "OthersStay", "gather", "if (on[g]) beat", "if (on[g] || g == 15) beat"),
    Proof("write", "weft_proof_write", NARROW),
    write_mistake("write-first-byte", "NoByteOutside", "OffsW'(i) >= first", "OffsW'(i) + 1'b1 >= first"),
    write_mistake("write-last-byte", "EveryByteInside", "OffsW'(i) <= last", "OffsW'(i) < last"),
    write_mistake("write-early", "JobsInOrder", "wire start = next_valid_q && (!active_q || ends);",
                  "wire start = next_valid_q && (!active_q || (beat_valid_i && left_q == beats_t'(2)));"),
    write_mistake("write-address", "AddressIsItsOwn", "addr_q  <= addr_q + 1'b1;", "addr_q  <= addr_q + 2'd2;"),
    write_mistake("write-page", "InsidePage", "(left_q > beats_t'(to_page)) ? to_page : PageW'(left_q - 1'b1)",
                  "PageW'(left_q - 1'b1)"),
    write_mistake("write-wlast", "LastIsItsOwn", "{last_q || page_end, strb, beat_data_i}",
                  "{last_q, strb, beat_data_i}"),
    write_mistake("write-read-error", "NothingAfterError", "wire mute = mute_q || beat_err_i;",
                  "wire mute = mute_q;"),
    write_mistake("write-error", "NothingAfterError", "if (b_err_i && b_err_idx_i == idx_q) mute_q <= 1'b1;", ""),
    write_mistake("write-error-stays", "EveryByteInside", "mute_q  <= 1'b0;", "mute_q  <= mute;"),
    write_mistake("write-data-early", "DataBehindAddress",
                  "wire w_ok = lead_q > LeadW'(1) || (lead_q == LeadW'(1) && m_axi_awvalid);",
                  "wire w_ok = 1'b1;"),
]


def main():
    if sys.argv[1:2] == ["--child"]:
        proof = {proof.name: proof for proof in PROOFS}[sys.argv[2]]
        return child(proof, os.path.join(BUILD, "formal", proof.name))
    wanted = sys.argv[1:]
    proofs = {proof.name: proof for proof in PROOFS}
    for name in wanted:
        if name not in proofs:
            print(f"prove.py: no proof is called '{name}'; expected one of: {' '.join(proofs)}", file=sys.stderr)
            return 2
    failed = 0
    print(f"{'proof':22} {'module':20} {'s':>6}  result", flush=True)
    for proof in [proofs[name] for name in wanted] or PROOFS:
        begin = time.monotonic()
        result = execute(proof)
        why = problem(proof, result)
        failed += bool(why)
        print(f"{proof.name:22} {proof.top:20} {time.monotonic() - begin:6.0f}  {why or result}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
