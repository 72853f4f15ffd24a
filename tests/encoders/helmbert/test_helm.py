"""HELM notation: what is read, what is refused, and where the error points."""

import csv
import os
import pickle
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encoders.helmbert import helm
from encoders.helmbert.helm import HELMSyntaxError

DATA = Path(os.environ.get("ENCODERS_DATA", Path(__file__).parents[3] / ".." / "shared" / "data"))

CYCLOSPORINE = (
    "PEPTIDE1{[Abu].[Sar].[meL].V.[meL].A.[dA].[meL].[meL].[meV].[Me_Bmt(E)]}$PEPTIDE1,PEPTIDE1,1:R1-11:R2$$$"
)
INLINE_SMILES = "[*N[C@H](CO)[C@@H](C)O |$_R1;;;;;;;$|]"
OCTREOTIDE = f"PEPTIDE1{{[dF].C.F.[dW].K.T.C.{INLINE_SMILES}}}$PEPTIDE1,PEPTIDE1,2:R3-7:R3$$$"
UNBRACKETED = "PEPTIDE1{meI.Aca.Thr_PO3H2.Aca.D-Tyr_Et.N.T.dK}$$$$"

RIGHT = {  # HELM string: symbols of each chain, number of connections
    "PEPTIDE1{A.C.D.E}$$$$": (["A C D E"], 0),
    "PEPTIDE1{A.C.D.E}$$$$V2.0": (["A C D E"], 0),
    CYCLOSPORINE: (["Abu Sar meL V meL A dA meL meL meV Me_Bmt(E)"], 1),
    OCTREOTIDE: ([f"dF C F dW K T C {INLINE_SMILES[1:-1]}"], 1),
    "PEPTIDE1{[ac-].[Bal(3-Me)].[-am]}$$$$": (["ac- Bal(3-Me) -am"], 0),
    "PEPTIDE1{[[*:1]N[C@@H](C(=O)[*:2])C.O].G}$$$$": (["[*:1]N[C@@H](C(=O)[*:2])C.O G"], 0),
    "PEPTIDE1{C'2'.A}$$$$V2.0": (["C A"], 0),
    "PEPTIDE1{A.(A:1+G:2+C:3).G.C}$$$$V2.0": (["A (A:1+G:2+C:3) G C"], 0),
    "PEPTIDE1{A.(A,G,?).X.*._}$$$$V2.0": (["A (A,G,?) X * _"], 0),
    "PEPTIDE1{(A.G)'2-5'.C}$$$$V2.0": (["(A.G) C"], 0),
    'PEPTIDE1{A"note with } and $$".C}"chain | note"$$$$': (["A C"], 0),
    "PEPTIDE1{C.A}|PEPTIDE2{G.C}$PEPTIDE1,PEPTIDE2,1:R3-2:R3$$$": (["C A", "G C"], 1),
    "PEPTIDE1{A.K}|CHEM1{[SMCC]}$PEPTIDE1,CHEM1,2:R3-1:R1$$$V2.0": (["A K", "SMCC"], 1),
    "PEPTIDE1{A.C.K}$PEPTIDE1,PEPTIDE1,?:?-?:?$$$V2.0": (["A C K"], 1),
    'PEPTIDE1{A.C.K}$PEPTIDE1,PEPTIDE1,(1,3):R1-C:R3"maybe"$$$V2.0': (["A C K"], 1),
    "RNA1{R(A)P.R(U)P}$$$$": (["R A P R U P"], 0),
    "RNA1{[dR](A)P.[dR](T)}|RNA2{[dR](A)P.[dR](T)}$RNA1,RNA2,2:pair-5:pair$$$V2.0": (["dR A P dR T"] * 2, 1),
    "RNA1{R(A)P}|RNA2{R(U)P}$$RNA1,RNA2,2:pair-2:pair$$": (["R A P", "R U P"], 1),
    "RNA1{(R(N)P.R(G)P)'4'.R((A,G))P}$$$$V2.0": (["(R(N)P.R(G)P) R (A,G) P"], 0),
    'BLOB1{Gold particle}"20 nm"|BLOB2{[Bead]}$$$$V2.0': (["Gold particle", "Bead"], 0),
    "PEPTIDE1{A}|CHEM1{*}$PEPTIDE1,G1,1:R1-?:?$G1(CHEM1:2.5+PEPTIDE1:1-3)|G2(G1,CHEM1:?)$$V2.0": (["A", "*"], 1),
    'PEPTIDE1{A}$$${"PEPTIDE1":{"note":"} $ | \\" "}}$V2.0': (["A"], 0),
    "RNA1{R(A)P}|RNA2{R(U)P}$$$RNA1{ss}|RNA2{as}$": (["R A P", "R U P"], 0),
}

WRONG = {  # HELM string: what the message says, position
    "PEPTIDE1{P.E.P.T.I.D.E}1731717317V2.0": ("shell.*single quotes", 23),
    "PEPTIDE1{A.C},PEPTIDE1,1:R1-2:R217317$": ("shell.*single quotes", 13),
    "$undefined,undefined,undefined:Rundefined-undefined:Rundefined$$$V2.0": ("expected a polymer", 0),
    "PEPTIDE1{A}$undefined,undefined,undefined:Rundefined-undefined:Rundefined$$$V2.0": ("id of a polymer", 12),
    "BlaBlaBla1{A}$$$$": ("PEPTIDE, RNA, CHEM, BLOB and a number, found 'BlaBlaBla'", 0),
    "PEPTIDE1{A.C.D}$PEPTIDE1,PEPTIDE1,1:R1-5:R2$$$": ("positions 1 to 3, received 5", 39),
    "PEPTIDE1{A.C.D}$PEPTIDE1,PEPTIDE1,0:R1-3:R2$$$": ("positions 1 to 3, received 0", 34),
    "PEPTIDE1{A.C.D}$PEPTIDE1,PEPTIDE1,(1,4):R1-3:R2$$$": ("positions 1 to 3, received 4", 34),
    "PEPTIDE1{L}$$$$V2.0V2.0": (r"'V2\.0' \(HELM 2\), found 'V2\.0V2\.0'", 15),
    "PEPTIDE1{L}$$$$$": ("behind the fourth", 15),
    "PEPTIDE1{L}": ("missing section: the polymers .* 0 are closed", 11),
    "PEPTIDE1{L}$$$": ("missing section: the annotations .* 3 are closed", 14),
    "": ("expected a polymer.*the end of the text", 0),
    "PEPTIDE{A}$$$$": ("expected a number behind PEPTIDE", 7),
    "PEPTIDE1A$$$$": (r"expected '\{' behind PEPTIDE1", 8),
    "PEPTIDE1{}$$$$": ("no monomers", 9),
    "PEPTIDE1{A..C}$$$$": ("expected a monomer.*found '\\.'", 11),
    "PEPTIDE1{A C}$$$$": (r"expected '}' or '\.' .*found ' '", 10),
    "PEPTIDE1{[]}$$$$": ("needs a name", 9),
    "PEPTIDE1{A.[meL.C}$$$$": (r"unbalanced '\['", 11),
    "PEPTIDE1{A.meL].C}$$$$": (r"found '\]'", 14),
    "PEPTIDE1{A.C": (r"unbalanced '\{'", 8),
    "PEPTIDE1{(A.G": (r"unbalanced '\('", 9),
    "PEPTIDE1{(A.G}$$$$": ("group that opens at position 9", 13),
    "PEPTIDE1{(A+G,C)}$$$$": (r"expected '\)' or '\+'", 13),
    "PEPTIDE1{(A:x+G)}$$$$": ("expected a share", 12),
    'PEPTIDE1{A"note}$$$$': ("unbalanced '\"'", 10),
    "PEPTIDE1{A'x'}$$$$": ("a repeat is", 10),
    "PEPTIDE1{A'5-2'}$$$$": ("write '2-5'", 10),
    "PEPTIDE1{K(A).G}$$$$": ("only RNA has branches", 10),
    "CHEM1{[SMCC].[Az]}$$$$": ("one monomer", 12),
    "BLOB1{$}$$$$": ("name of a component", 6),
    "PEPTIDE1{A}|PEPTIDE1{C}$$$$": ("PEPTIDE1 is defined twice", 12),
    "PEPTIDE1{A.C}$PEPTIDE2,PEPTIDE1,1:R1-2:R2$$$": ("PEPTIDE2 does not exist; defined are PEPTIDE1", 14),
    "PEPTIDE1{A.C}$PEPTIDE1,PEPTIDE2,1:R1-2:R2$$$": ("PEPTIDE2 does not exist; defined are PEPTIDE1", 23),
    "PEPTIDE1{A.C}$PEPTIDE1,PEPTIDE1,1:X1-2:R2$$$": ("attachment point.*found 'X'", 34),
    "PEPTIDE1{A.C}$PEPTIDE1,PEPTIDE1,:R1-2:R2$$$": ("expected a position.*found ':'", 32),
    "PEPTIDE1{A.C}$PEPTIDE1,PEPTIDE1,1:R1$$$": ("expected '-' between", 36),
    "PEPTIDE1{A.C}$PEPTIDE1,1:R1-2:R2$$$": ("id of a polymer.*found '1'", 23),
    "PEPTIDE1{A.C}$$PEPTIDE1,PEPTIDE1,1:R1-2:R2$$": ("hydrogen bonds", 33),
    "PEPTIDE1{A}$$G1(PEPTIDE1+CHEM1)$$V2.0": ("CHEM1 does not exist", 25),
    'PEPTIDE1{A}$$${"a":1$V2.0': (r"unbalanced '\{'.*annotation", 14),
    f"PEPTIDE1{{{'(' * 30}A{')' * 30}}}$$$$": ("nest deeper than 20", 29),
}


@pytest.mark.parametrize("text", RIGHT)
def test_reads(text):
    symbols, connections = RIGHT[text]
    parsed = helm.parse(text, strict=True)
    assert [" ".join(m.symbol for m in chain.monomers) for chain in parsed.chains] == symbols
    assert len(parsed.connections) == connections
    assert parsed.version == ("V2.0" if text.endswith("V2.0") else "")
    assert_offsets(parsed)


@pytest.mark.parametrize("text", WRONG)
def test_refuses(text):
    message, position = WRONG[text]
    with pytest.raises(HELMSyntaxError, match=message) as error:
        helm.parse(text)
    assert error.value.position == position


def test_error_shows_a_caret_under_the_character():
    with pytest.raises(HELMSyntaxError) as error:
        helm.parse("PEPTIDE1{" + "A.\n" * 40 + "}$$$$")
    *_, line, caret = str(error.value).split("\n")
    assert line[caret.index("^")] == "·"  # the newline, made visible
    with pytest.raises(HELMSyntaxError) as error:
        helm.parse("PEPTIDE1{" + "A." * 40 + "!.C}$$$$")
    *_, line, caret = str(error.value).split("\n")
    assert line[caret.index("^")] == "!"
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_names_without_brackets():
    with pytest.warns(UserWarning, match="meI, Aca, Thr_PO3H2, D-Tyr_Et, dK") as record:
        parsed = helm.parse(UNBRACKETED)
    assert len(record) == 1
    assert [m.symbol for m in parsed.chains[0].monomers] == UNBRACKETED[9:-5].split(".")
    with pytest.raises(HELMSyntaxError, match=r"write \[meI\]") as error:
        helm.parse(UNBRACKETED, strict=True)
    assert error.value.position == 9


def test_details_of_monomers():
    repeated, mixture, noted = helm.parse("PEPTIDE1{C'2-5'.(A:1.5+G:?).D'3'\"note\"}$$$$V2.0").chains[0].monomers
    assert (repeated.symbol, repeated.repeat, repeated.text) == ("C", (2, 5), "C'2-5'")
    assert [(m.symbol, m.ratio) for m in mixture.members] == [("A", "1.5"), ("G", "?")]
    assert mixture.separator == "+"
    assert (noted.symbol, noted.repeat, noted.note) == ("D", (3, 3), "note")
    sugar, base, phosphate = helm.parse("RNA1{R(A)P}$$$$").chains[0].monomers
    assert [sugar.branch, base.branch, phosphate.branch] == [False, True, False]


def test_details_of_connections_groups_and_annotations():
    text = 'PEPTIDE1{A.K}"heavy"|CHEM1{*}$PEPTIDE1,CHEM1,(1,2):R3-?:?"bond"$G1(PEPTIDE1+CHEM1:2.5)"mix"$one|two$V2.0'
    parsed = helm.parse(text)
    chain, (connection,), (group,) = parsed.chains[0], parsed.connections, parsed.groups
    assert (chain.id, chain.polymer_type, chain.note) == ("PEPTIDE1", "PEPTIDE", "heavy")
    assert (connection.source.chain, connection.source.position, connection.source.attachment) == (
        "PEPTIDE1",
        "(1,2)",
        "R3",
    )
    assert (connection.target.chain, connection.target.position, connection.note) == ("CHEM1", "?", "bond")
    assert (group.id, group.separator, group.note) == ("G1", "+", "mix")
    assert [(m.id, m.ratio) for m in group.members] == [("PEPTIDE1", None), ("CHEM1", "2.5")]
    assert [a.text for a in parsed.annotations] == ["one", "two"]
    assert helm.parse(CYCLOSPORINE).connections[0].target.position == 11


PIECES = [
    "PEPTIDE1",
    "PEPTIDE1{",
    "RNA1{",
    "CHEM1{*}",
    "G1",
    "meL",
    ":R1-",
    "pair",
    "V2.0",
    "$$",
    *"{}[]()$|.,+-:?*_'\"19AG \n",
]


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join)), st.booleans())
def test_random_text_raises_nothing_else(text, strict):
    assert_read_or_refused(text, strict)


@settings(deadline=None)
@given(st.sampled_from(sorted(RIGHT)), st.integers(0, 120), st.integers(0, 3), st.sampled_from(["", *PIECES]))
def test_damaged_text_raises_nothing_else(text, at, removed, inserted):
    assert_read_or_refused(text[:at] + inserted + text[at + removed :], strict=False)


@pytest.mark.parametrize("name", ["helm_mlm_3000.csv", "peptide_permeability.csv", "peptide_caco2_small.csv"])
def test_reads_all_real_peptides(name):
    if not (DATA / name).is_file():
        pytest.skip(f"{DATA / name} is absent; ENCODERS_DATA names the folder of the data sets")
    with open(DATA / name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        (chain,) = helm.parse(row["helm"], strict=True).chains
        assert len(chain.monomers) == int(row.get("n_monomers", len(chain.monomers)))


@pytest.mark.parametrize("piece", ["(", "[", "{", '"', "A", "A.", "9", "$", "PEPTIDE1{A}|", "PEPTIDE1{(A.", "'", "\\"])
def test_long_text_raises_nothing_else(piece):
    for start in ("", "PEPTIDE1{", "PEPTIDE1{A}$PEPTIDE1,PEPTIDE1,", "PEPTIDE1{A}$$$"):
        assert_read_or_refused(start + piece * 20_000, strict=False)


def assert_read_or_refused(text: str, strict: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            parsed = helm.parse(text, strict=strict)
        except HELMSyntaxError as error:
            inside = 0 <= error.position <= len(text)
        else:
            inside = True
            assert_offsets(parsed)
    assert inside


def assert_offsets(parsed: helm.HELM) -> None:
    spans = [*parsed.chains, *parsed.connections, *parsed.groups, *parsed.annotations]
    while spans:
        span = spans.pop()
        assert parsed.text[span.start : span.end] == span.text
        for inside in ("monomers", "members"):
            spans.extend(getattr(span, inside, ()))
        spans.extend(getattr(span, end) for end in ("source", "target") if hasattr(span, end))
