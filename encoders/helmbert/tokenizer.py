"""HELM-BERT's tokenizer: peptides in HELM notation, character by character, with four compressed words.

The 78 ids are those of the published vocabulary (Flansma/helm-bert). The published scheme
rewrites the string before it looks characters up: PEPTIDE, me, am and ac become the single characters `/`, `*`, TAB
and `&`. Here the four words are vocabulary entries instead, so nothing is rewritten and offsets stay those of the text.
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

READABLE_SPECIAL_TOKENS = ("<pad>", "<cls>", "<sep>", "§", "¶")
PUBLISHED_SPECIAL_TOKENS = (" ", "@", "\n", "§", "¶")
UNKNOWN, MASK = 3, 4
SPECIAL_TOKEN_IDS = {
    "pad_token": 0,
    "cls_token": 1,
    "bos_token": 1,
    "sep_token": 2,
    "eos_token": 2,
    "unk_token": UNKNOWN,
    "mask_token": MASK,
}

CHARACTERS = "ARNDCEQGHILKMFPSTWYVX[]{}()$,:|-.0123456789BO>abcdefghilmnoprstuvxyz"  # ids 5 to 72
PUBLISHED_CODES = {"PEPTIDE": "/", "me": "*", "am": "\t", "ac": "&"}  # ids 73 to 76, in the order of replacement
WORDS_AND_CHARACTERS = r"PEPTIDE|me|am(?!e)|ac|[\s\S]"  # `me` is replaced before `am`: "ame" is a + me

NOT_REPRESENTABLE = {
    **{code: f"the published code for {word!r}" for word, code in PUBLISHED_CODES.items()},
    " ": "the published padding token",
    "@": "the published classification token",
    "\n": "the published separator token",
    "§": "the unknown token",
    "[MASK]": "read as six ordinary characters; the mask is '¶'",
}


class HELMTextError(ValueError):
    """A text that the vocabulary can't represent, refused by `HELMBertTokenizer(strict=True)`.

    Attributes:
        reason: what the offending part is.
        text: the text it stands in.
        position: its offset in the text.
    """

    def __init__(self, reason: str, text: str, position: int):
        super().__init__(reason, text, position)
        self.reason, self.text, self.position = reason, text, position

    def __str__(self) -> str:
        context = self.text[max(0, self.position - 20) : self.position + 20]
        return (
            f"position {self.position}: {self.reason}. It stands in {context!r}. Remove it from the text, or leave "
            "strict out to get a warning instead."
        )


class HELMBertTokenizer(PreTrainedTokenizerFast):
    """HELM-BERT's published vocabulary and compression: `<cls> text <sep>`, pairs `<cls> a <sep> b <sep>`.

    The vocabulary. Ids 73 to 76 are stored as what they mean (`PEPTIDE`, `me`, `am`, `ac`), not as the published code
    characters. So `convert_ids_to_tokens` is readable, decoding is joining, `decode(encode(text),
    skip_special_tokens=True) == text` for every text of known characters, and a raw `/` in a text is no token at all.
    For the same reason padding, start and end (ids 0, 1, 2) are called `<pad>`, `<cls>` and `<sep>`, which no HELM
    string holds; the published names are a space, `@` and a newline, which texts do hold.

    Characters that the published scheme mistakes for something else (`/ * & @`, TAB, space, newline), and characters
    that it doesn't know (`; = ' +`, the RNA base U, ...):

    - by default each is the unknown token `§` (id 3), and one warning a call names them. All other characters get the
      published ids. `[MASK]` is six ordinary characters, as published, with the same warning: the mask is `¶`;
    - `strict=True` refuses them, and `[MASK]`, with a `HELMTextError`;
    - `compatible=True` gives exactly the published ids, without a warning: a raw `/` is `PEPTIDE`, a space is padding.
      The special tokens then have their published names.

    Tokens added with `add_tokens` count as known.

    Args:
        vocab: the vocabulary of a saved tokenizer, given by `from_pretrained`. It can't be another one.
        strict: refuse texts that can't be represented.
        compatible: reproduce the published ids, also where they confuse two texts.
        **kwargs: what every tokenizer of transformers takes, such as `model_max_length` (512) and `padding_side`.

    Raises:
        ValueError: `strict` together with `compatible`; another vocabulary; other special tokens.
    """

    vocab_files_names = {"tokenizer_file": "tokenizer.json"}
    model_input_names = ["input_ids", "attention_mask"]
    model = models.WordLevel
    _not_representable: re.Pattern[str]

    def __init__(
        self, vocab: dict[str, int] | None = None, *, strict: bool = False, compatible: bool = False, **kwargs: Any
    ):
        if strict and compatible:
            raise ValueError(
                "strict=True and compatible=True exclude one another: the first refuses the texts for which the second "
                "reproduces the published ids. Choose one."
            )
        if vocab is not None and vocab not in (vocabulary(compatible), vocabulary(not compatible)):
            raise ValueError(
                f"not HELM-BERT's vocabulary: received {len(vocab)} entries that differ from the 78 published ones. "
                "Extend it with add_tokens, or load another vocabulary with PreTrainedTokenizerFast."
            )
        special_tokens = PUBLISHED_SPECIAL_TOKENS if compatible else READABLE_SPECIAL_TOKENS
        for role, index in SPECIAL_TOKEN_IDS.items():
            allowed = (READABLE_SPECIAL_TOKENS[index], PUBLISHED_SPECIAL_TOKENS[index])
            if kwargs.setdefault(role, special_tokens[index]) is None:  # as set by the user, and saved
                continue
            if str(kwargs[role]) not in allowed:
                raise ValueError(f"{role}={kwargs[role]!r}: HELM-BERT's is {special_tokens[index]!r}. Leave it out.")
            kwargs[role] = special_tokens[index]
        # A saved file may have the other names for ids 0 to 4; only what `add_tokens` added is taken from it.
        added = kwargs.pop("added_tokens_decoder", {})
        kwargs["added_tokens_decoder"] = {i: token for i, token in added.items() if i >= len(vocabulary(compatible))}
        kwargs["post_processor"] = _template(special_tokens)
        kwargs.setdefault("model_max_length", 512)
        kwargs.setdefault("clean_up_tokenization_spaces", False)

        self._tokenizer = _backend(compatible)
        super().__init__(strict=strict, compatible=compatible, **kwargs)  # all of these are saved
        self.strict = strict
        self.compatible = compatible

    def train_new_from_iterator(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: the vocabulary is the published one.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "HELM-BERT's vocabulary is fixed: 78 entries, in the order of the published embedding. Extend it with "
            "add_tokens, or train the tokenizer of another family with encoders.train_tokenizer."
        )

    def _add_tokens(self, new_tokens: list[str | AddedToken], special_tokens: bool = False) -> int:
        number = super()._add_tokens(new_tokens, special_tokens=special_tokens)
        self._not_representable = _not_representable_pattern(self.added_tokens_encoder)
        return number

    def _encode_plus(self, text: Any, text_pair: Any = None, *args: Any, **kwargs: Any):
        if not self.compatible:
            self._check([text, text_pair])
        return super()._encode_plus(text, text_pair, *args, **kwargs)

    def _check(self, texts: Iterable[Any]) -> None:
        """Warn once of everything in `texts` that has no token of its own; in strict mode refuse the first."""
        found = set()
        for text in _strings(texts):
            for match in self._not_representable.finditer(text):
                if match[1] is None:  # an added token
                    continue
                if self.strict:
                    raise HELMTextError(_describe(match[1]), text, match.start())
                found.add(match[1])
        if found:
            warnings.warn(
                "HELM-BERT's vocabulary has no token for parts of these texts; unknown characters become '§': "
                f"{'; '.join(map(_describe, sorted(found)))}. strict=True says where they stand, compatible=True gives "
                "the published ids.",
                UserWarning,
                stacklevel=4,
            )


def vocabulary(compatible: bool = False) -> dict[str, int]:
    """The 78 tokens and their ids; `compatible` gives the special tokens their published names."""
    special_tokens = PUBLISHED_SPECIAL_TOKENS if compatible else READABLE_SPECIAL_TOKENS
    return {token: i for i, token in enumerate([*special_tokens, *CHARACTERS, *PUBLISHED_CODES, "_"])}


def _backend(compatible: bool) -> Tokenizer:
    special_tokens = PUBLISHED_SPECIAL_TOKENS if compatible else READABLE_SPECIAL_TOKENS
    tokenizer = Tokenizer(models.WordLevel(vocabulary(compatible), unk_token=special_tokens[UNKNOWN]))
    split = pre_tokenizers.Split(Regex(WORDS_AND_CHARACTERS), "isolated")
    if compatible:
        # A raw code character is spelled out. A raw TAB before "e" is am + e, unlike the text "ame": a TAB is kept
        # after its "am" to part the two, and then dropped.
        spelled_out = {code: word + code * (code == "\t") for word, code in PUBLISHED_CODES.items()}
        tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(*pair) for pair in spelled_out.items()])
        split = pre_tokenizers.Sequence([pre_tokenizers.Split("\t", "removed"), split])
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def _template(special_tokens: tuple[str, ...]) -> processors.TemplateProcessing:
    start, end = special_tokens[1], special_tokens[2]
    return processors.TemplateProcessing(
        single=[start, "$A", end], pair=[start, "$A", end, "$B:1", f"{end}:1"], special_tokens=[(start, 1), (end, 2)]
    )


def _not_representable_pattern(added_tokens: Iterable[str]) -> re.Pattern[str]:
    """Matches added tokens (no group), and in group 1 whatever else the vocabulary has no token for."""
    known = sorted(map(re.escape, set(added_tokens) - {READABLE_SPECIAL_TOKENS[UNKNOWN]}), key=len, reverse=True)
    return re.compile(rf"{'|'.join(known)}|(\[MASK\]|[^{re.escape(CHARACTERS)}_])")


def _describe(found: str) -> str:
    return f"{found!r} ({NOT_REPRESENTABLE.get(found, 'not in the vocabulary')})"


def _strings(texts: Iterable[Any]) -> Iterator[str]:
    """The strings in nested lists of texts, pairs or words; anything else is for the backend to refuse."""
    for text in texts:
        if isinstance(text, str):
            yield text
        elif isinstance(text, (list, tuple)):
            yield from _strings(text)
