"""A reader and validator of HELM, the notation of peptides, oligonucleotides and their conjugates.

A HELM string has four sections, each closed by `$`, and a version:

    polymers $ connections $ hydrogen bonds (HELM 1) or groups (HELM 2) $ annotations $ nothing, or V2.0 (HELM 2)

    PEPTIDE1{A.[meL].C}|CHEM1{[SMCC]}$PEPTIDE1,CHEM1,3:R3-1:R1$$$V2.0

Source: the HELM 2 specification of the Pistoia Alliance; Zhang et al., J. Chem. Inf. Model. 2012, 52, 2796. Monomers
are not looked up in a library, so neither their names nor their attachment points are checked.
"""

import re
import warnings
from dataclasses import dataclass, replace

from encoders.helmbert.helm_scanner import HELMSyntaxError, Scanner, Span

__all__ = ["HELM", "Chain", "Connection", "Endpoint", "Group", "HELMSyntaxError", "Member", "Monomer", "Span", "parse"]

POLYMER_TYPES = ("PEPTIDE", "RNA", "CHEM", "BLOB")
DEEPEST_GROUP = 20

NUMBER = re.compile(r"[0-9]{1,9}")
POLYMER_TYPE = re.compile(r"[A-Za-z_]*")
ENTITY = re.compile(rf"(?:{'|'.join(POLYMER_TYPES)}|G)[0-9]{{1,9}}")
SINGLE_LETTER = re.compile(r"[A-Za-z?*_]")
BARE_NAME = re.compile(r"[?*]|[A-Za-z0-9_-]*[A-Za-z_][A-Za-z0-9_-]*")
BLOB_TEXT = re.compile(r'[^{}"$|]+')
SEVERAL_POSITIONS = re.compile(r"\([0-9]{1,9}(?:[,+][0-9]{1,9})*\)")
ATTACHMENT = re.compile(r"R[1-9][0-9]{0,8}|pair|\?")


@dataclass(frozen=True)
class Monomer(Span):
    """One monomer, or a group of them in parentheses.

    Attributes:
        symbol: the name or inline SMILES without brackets, or the whole of a group.
        members: the monomers of a group, else empty.
        separator: how members relate: `.` they follow one another, `,` one of them, `+` a mixture of them.
        ratio: the share as a member of a mixture, as written (`2.5`, `1-3`, `?`).
        repeat: the least and the greatest number of repeats.
        note: the text in double quotes behind it.
        branch: whether it hangs off the backbone, as an RNA base does.
    """

    symbol: str
    members: tuple["Monomer", ...] = ()
    separator: str = ""
    ratio: str | None = None
    repeat: tuple[int, int] = (1, 1)
    note: str | None = None
    branch: bool = False


@dataclass(frozen=True)
class Chain(Span):
    """One polymer, such as `PEPTIDE1{A.C}`; connections count its `monomers` from 1, groups and branches included."""

    id: str
    polymer_type: str
    monomers: tuple[Monomer, ...]
    note: str | None


@dataclass(frozen=True)
class Endpoint(Span):
    """One end of a connection: a position (a number; else as written: `?`, `(4,8)`, `K`) and an attachment point."""

    chain: str
    position: int | str
    attachment: str


@dataclass(frozen=True)
class Connection(Span):
    """A bond (`R1` to `R2`) or a hydrogen bond (`pair` to `pair`) between two endpoints."""

    source: Endpoint
    target: Endpoint
    note: str | None


@dataclass(frozen=True)
class Member(Span):
    """A chain or group within a group, and its share as written."""

    id: str
    ratio: str | None


@dataclass(frozen=True)
class Group(Span):
    """Chains that belong together: `+` all of them, `,` one of them."""

    id: str
    members: tuple[Member, ...]
    separator: str
    note: str | None


@dataclass(frozen=True)
class HELM:
    """A HELM string, read. Annotations are kept as they are written (HELM 2 has JSON there)."""

    text: str
    chains: tuple[Chain, ...]
    connections: tuple[Connection, ...]
    groups: tuple[Group, ...]
    annotations: tuple[Span, ...]
    version: str


def parse(text: str, *, strict: bool = False) -> HELM:
    """Read and check a HELM string.

    Args:
        text: the string, HELM 1 or HELM 2.
        strict: refuse monomer names of several letters without brackets (`PEPTIDE1{meL.A}`). They are common in the
            wild, so by default each is read as one monomer, with one warning.

    Raises:
        HELMSyntaxError: the string is not HELM; the error points at the character.
    """
    reader = _Reader(text, strict)
    chains = reader.listed(reader.chain)
    reader.close_section(0, "the polymers")
    connections = () if reader.peek() == "$" else reader.listed(reader.connection)
    reader.close_section(1, "the connections")
    groups = reader.listed(reader.group) if reader.peek() == "G" else ()
    hydrogen_bonds = () if reader.peek() == "$" or groups else reader.listed(reader.hydrogen_bond)
    reader.close_section(2, "the groups or hydrogen bonds")
    annotations = () if reader.peek() == "$" else reader.listed(reader.annotation)
    reader.close_section(3, "the annotations")
    helm = HELM(text, chains, connections + hydrogen_bonds, groups, annotations, reader.version())
    _check_names(helm)
    if reader.bare_names:
        names = ", ".join(dict.fromkeys(reader.bare_names))
        warnings.warn(
            f"monomers of several letters without brackets: {names}. Each was read as one monomer: write [name], or "
            "put '.' between single letters. strict=True refuses them.",
            UserWarning,
            stacklevel=2,
        )
    return helm


def _check_names(helm: HELM) -> None:
    """Every chain, group and position that a connection or group names must exist, once."""
    elements: dict[str, Chain | Group] = {}
    for element in (*helm.chains, *helm.groups):
        if element.id in elements:
            raise HELMSyntaxError(f"{element.id} is defined twice", helm.text, element.start)
        elements[element.id] = element

    def look_up(name: str, offset: int) -> Chain | Group:
        if name not in elements:
            raise HELMSyntaxError(f"{name} does not exist; defined are {', '.join(elements)}", helm.text, offset)
        return elements[name]

    for group in helm.groups:
        for member in group.members:
            look_up(member.id, member.start)
    for connection in helm.connections:
        source, target = connection.source, connection.target
        offsets = connection.start, connection.start + len(source.chain) + len(",")
        for endpoint, offset in zip((source, target), offsets, strict=True):
            element = look_up(endpoint.chain, offset)
            if isinstance(element, Group):
                continue
            for number in map(int, NUMBER.findall(str(endpoint.position))):
                if not 1 <= number <= len(element.monomers):
                    raise HELMSyntaxError(
                        f"{element.id} has the positions 1 to {len(element.monomers)}, received {number}",
                        helm.text,
                        endpoint.start,
                    )


class _Reader(Scanner):
    """The grammar; each method reads one element."""

    def __init__(self, text: str, strict: bool):
        super().__init__(text)
        self.strict = strict
        self.bare_names: list[str] = []
        self.depth = 0

    def close_section(self, closed: int, name: str) -> None:
        if self.take("$"):
            return
        if not self.peek():
            raise self.error(f"missing section: {name} must end in '$'; of the four sections {closed} are closed")
        hint = ""
        if closed == 0 and self.peek() in "0123456789,":
            hint = ". Did a shell replace '$$' by a process id? Put the string in single quotes on a command line"
        raise self.error(f"expected '$' behind {name}, or '|' and another of them, found {self.found()}{hint}")

    def version(self) -> str:
        version = self.text[self.position :]
        if version not in ("", "V2.0"):
            raise self.error(f"behind the fourth '$' stands nothing (HELM 1) or 'V2.0' (HELM 2), found {version!r}")
        return version

    def chain(self) -> Chain:
        start = self.position
        self.match(POLYMER_TYPE)
        polymer_type = self.text[start : self.position]
        if polymer_type not in POLYMER_TYPES:
            found = repr(polymer_type) if polymer_type else self.found()
            raise self.error(f"expected a polymer: {', '.join(POLYMER_TYPES)} and a number, found {found}", start)
        if self.match(NUMBER) is None:
            raise self.error(f"expected a number behind {polymer_type}, as in {polymer_type}1, found {self.found()}")
        name, opening = self.text[start : self.position], self.position
        self.expect("{", f"behind {name}")
        if self.peek() == "}":
            raise self.error(f"{name} has no monomers")
        monomers = self.blob() if polymer_type == "BLOB" else self.sequence(polymer_type)
        if not self.peek():
            raise self.error(f"unbalanced '{{': the polymer {name} that opens here is never closed", opening)
        self.expect("}", f"or '.' behind a monomer of {name}")
        note = self.note()
        return Chain(**self.span(start), id=name, polymer_type=polymer_type, monomers=monomers, note=note)

    def blob(self) -> tuple[Monomer, ...]:
        """The one component of a BLOB: a name in brackets, or free text."""
        start = self.position
        if self.peek() == "[":
            symbol = self.bracketed()
        elif match := self.match(BLOB_TEXT):
            symbol = match[0]
        else:
            raise self.error(f"expected the name of a component, found {self.found()}")
        return (Monomer(**self.span(start), symbol=symbol),)

    def sequence(self, polymer_type: str) -> tuple[Monomer, ...]:
        monomers = self.unit(polymer_type)
        while self.take("."):
            if polymer_type == "CHEM":
                raise self.error("a CHEM polymer has one monomer, found '.' and a second", self.position - 1)
            monomers += self.unit(polymer_type)
        return tuple(monomers)

    def unit(self, polymer_type: str) -> list[Monomer]:
        """What stands between two dots: one monomer, in RNA a sugar with its base and phosphate, `R(A)P`."""
        monomers = [self.monomer(polymer_type)]
        if polymer_type != "RNA":
            if self.peek() == "(":
                raise self.error(f"only RNA has branches in parentheses; in {polymer_type} write '.' or a connection")
            return monomers
        while self.peek() in ("(", "[") or SINGLE_LETTER.match(self.peek()):
            if self.peek() == "(":
                monomers.append(self.branch(polymer_type))
            else:
                monomers.append(self.monomer(polymer_type))
        return monomers

    def branch(self, polymer_type: str) -> Monomer:
        """A base behind its sugar; `(A)` is the monomer A, `(A,G)` a group."""
        group = self.group_of_monomers(polymer_type)
        return replace(group.members[0] if len(group.members) == 1 else group, branch=True)

    def monomer(self, polymer_type: str) -> Monomer:
        start = self.position
        if self.peek() == "(":
            monomer = self.group_of_monomers(polymer_type)
        else:
            symbol = self.symbol(polymer_type)
            monomer = Monomer(**self.span(start), symbol=symbol)
        repeat, note = self.repeat(), self.note()
        return replace(monomer, **self.span(start), repeat=repeat, note=note)

    def symbol(self, polymer_type: str) -> str:
        start = self.position
        if self.peek() == "[":
            name = self.bracketed()
            if not name:
                raise self.error("a monomer needs a name between '[' and ']'", start)
            return name
        match = self.match(SINGLE_LETTER if polymer_type == "RNA" else BARE_NAME)
        if match is None:
            raise self.error(
                f"expected a monomer: a letter, a name or SMILES in '[]', or a group in '()', found {self.found()}"
            )
        if len(match[0]) > 1:
            if self.strict:
                raise self.error(f"a monomer name of several letters needs brackets: write [{match[0]}]", start)
            self.bare_names.append(match[0])
        return match[0]

    def group_of_monomers(self, polymer_type: str) -> Monomer:
        """Alternatives `(A,G)`, a mixture `(A:1+G:2)` or a sequence `(A.G)`."""

        def element() -> list[Monomer]:
            *before, last = self.unit(polymer_type)
            return [*before, replace(last, ratio=self.ratio())]

        start = self.position
        self.depth += 1
        if self.depth > DEEPEST_GROUP:
            raise self.error(f"groups nest deeper than {DEEPEST_GROUP}")
        units, separator = self.parenthesised(element, ".,+")
        self.depth -= 1
        members = tuple(monomer for unit in units for monomer in unit)
        span = self.span(start)
        return Monomer(**span, symbol=span["text"], members=members, separator=separator)

    def entity(self) -> str:
        match = self.match(ENTITY)
        if match is None:
            raise self.error(f"expected the id of a polymer or group, such as PEPTIDE1 or G1, found {self.found()}")
        return match[0]

    def connection(self) -> Connection:
        start = self.position
        source_chain = self.entity()
        self.expect(",", "behind the id of the first polymer")
        target_chain = self.entity()
        self.expect(",", "behind the id of the second polymer")
        source = self.endpoint(source_chain)
        self.expect("-", "between the two ends of a connection")
        target = self.endpoint(target_chain)
        note = self.note()
        return Connection(**self.span(start), source=source, target=target, note=note)

    def hydrogen_bond(self) -> Connection:
        bond = self.connection()
        if bond.source.attachment != "pair" or bond.target.attachment != "pair":
            raise self.error(
                "the third section holds groups or hydrogen bonds (pair-pair); other bonds belong in the second",
                bond.source.start,
            )
        return bond

    def endpoint(self, chain: str) -> Endpoint:
        start = self.position
        if self.peek() == "[":
            self.bracketed()
        elif not (self.match(NUMBER) or self.match(SEVERAL_POSITIONS) or self.match(SINGLE_LETTER)):
            raise self.error(f"expected a position: a number, '?', '(4,8)' or a monomer, found {self.found()}")
        written = self.text[start : self.position]
        self.expect(":", "between a position and its attachment point")
        attachment = self.match(ATTACHMENT)
        if attachment is None:
            raise self.error(f"expected an attachment point: R1, R2, R3, ..., pair or '?', found {self.found()}")
        position = int(written) if NUMBER.fullmatch(written) else written
        return Endpoint(**self.span(start), chain=chain, position=position, attachment=attachment[0])

    def group(self) -> Group:
        start = self.position
        name = self.entity()
        members, separator = self.parenthesised(self.member, ",+")
        note = self.note()
        return Group(**self.span(start), id=name, members=tuple(members), separator=separator, note=note)

    def member(self) -> Member:
        start = self.position
        name, ratio = self.entity(), self.ratio()
        return Member(**self.span(start), id=name, ratio=ratio)

    def annotation(self) -> Span:
        """Free text up to a `|` or `$` outside quotes and braces (JSON)."""
        start, depth = self.position, 0
        while self.peek() and (depth > 0 or self.peek() not in "$|"):
            if self.note() is None:
                depth += (self.peek() == "{") - (self.peek() == "}")
                self.position += 1
        if depth > 0:
            raise self.error("unbalanced '{': a brace of this annotation is never closed", start)
        return Span(**self.span(start))
