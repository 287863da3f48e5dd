"""Which token has which id, and where do a tokenizer and a model disagree about it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from wattline.spec.tree import printable

# Vocabularies are padded for the sake of matrix kernels: to 128 at most times, by 1.8 % in Phi-2, and 1,024
# rows cover what anyone pads to. More are rows that no token trains, or the configuration of another model.
_PADDED_ROWS = 1024
_PADDED_SHARE = 0.1
_ROLES = ("bos", "eos", "pad", "unk")
# Where no file says which token ends a text, these are known not to.
_NO_ENDS = frozenset(
    {"<s>", "<bos>", "<|begin_of_text|>", "[BOS]", "<pad>", "[PAD]", "<|pad|>", "<unk>", "[UNK]", "<mask>"}
)
_SAME = "take tokenizer and config from the same model"
_SHOWN = 3


class AddedToken(msgspec.Struct, frozen=True):
    id: int
    content: str


class TokenModel(msgspec.Struct, frozen=True):
    vocab: dict[str, int] | list[tuple[str, float]] = {}  # Unigram: token and score, the place is the id
    unk_token: str | None = None


class TokenizerFile(msgspec.Struct, frozen=True):
    model: TokenModel
    added_tokens: list[AddedToken] = []


class ModelConfig(msgspec.Struct, frozen=True):
    vocab_size: int | None = None
    bos_token_id: int | list[int] | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | list[int] | None = None
    unk_token_id: int | list[int] | None = None
    text_config: ModelConfig | None = None  # models of more than text keep the language model's here

    def innermost(self) -> ModelConfig:
        """With what only the language model's own part says."""
        if self.text_config is None:
            return self
        own = msgspec.structs.asdict(self)
        inner = msgspec.structs.asdict(self.text_config)
        return ModelConfig(**{name: inner[name] if value is None else value for name, value in own.items()})

    def ids(self, role: str) -> list[int]:
        """Those given; some write -1 for none."""
        found = getattr(self, f"{role}_token_id")
        listed = found if isinstance(found, list) else [] if found is None else [found]
        return [number for number in listed if number >= 0]


class NamedToken(msgspec.Struct, frozen=True):
    content: str


class TokenizerConfig(msgspec.Struct, frozen=True):
    bos_token: str | NamedToken | None = None
    eos_token: str | NamedToken | None = None
    pad_token: str | NamedToken | None = None
    unk_token: str | NamedToken | None = None

    def token(self, role: str) -> str | None:
        found = getattr(self, f"{role}_token")
        return found.content if isinstance(found, NamedToken) else found


@dataclass(frozen=True, slots=True)
class Flaw:
    message: str
    fix: str = _SAME
    outcome: Literal["warn", "fail"] = "fail"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    by_id: dict[int, str]
    by_token: dict[str, int]
    twice: tuple[str, ...]  # what stands in it in a way that cannot be

    @classmethod
    def of(cls, tokenizer: TokenizerFile) -> Vocabulary:
        vocab = tokenizer.model.vocab
        pairs = list(vocab.items()) if isinstance(vocab, dict) else []
        if isinstance(vocab, list):
            pairs = [(token, at) for at, (token, _) in enumerate(vocab)]
        added = [(token.content, token.id) for token in tokenizer.added_tokens]
        by_id: dict[int, str] = {}
        by_token: dict[str, int] = {}
        twice = []
        for token, number in [*pairs, *added]:
            if by_id.setdefault(number, token) != token:
                twice.append(f"id {number} is {_quoted(by_id[number])} and {_quoted(token)}")
            if by_token.setdefault(token, number) != number:
                twice.append(f"{_quoted(token)} is id {by_token[token]} and id {number}")
        return cls(by_id, by_token, tuple(twice))


def vocabulary_flaws(vocabulary: Vocabulary, vocab_size: int) -> Iterator[Flaw]:
    beyond = sorted(number for number in vocabulary.by_id if not 0 <= number < vocab_size)
    if beyond:
        tokens = ", ".join(f"{_quoted(vocabulary.by_id[number])} ({number})" for number in beyond[:_SHOWN])
        yield Flaw(
            f"{len(beyond):,} of {len(vocabulary.by_id):,} tokens have ids beyond the model's vocab_size of "
            f"{vocab_size:,}: {tokens}",
            fix=f"set vocab_size to {max(beyond) + 1:,} or more and resize the embedding, or {_SAME}",
        )
    if vocabulary.twice:
        told = "; ".join(vocabulary.twice[:_SHOWN])
        yield Flaw(
            f"ids or tokens that stand twice: {len(vocabulary.twice):,}; {told}", fix="give each its own id"
        )
    spare = vocab_size - len(vocabulary.by_id)
    if spare > max(_PADDED_ROWS, _PADDED_SHARE * len(vocabulary.by_id)):
        yield Flaw(
            f"vocab_size is {vocab_size:,} and the tokenizer has {len(vocabulary.by_id):,} tokens: more than "
            "padding explains",
            outcome="warn",
        )


def special_flaws(
    vocabulary: Vocabulary, tokenizer: TokenizerFile, model: ModelConfig, names: TokenizerConfig
) -> Iterator[Flaw]:
    added = {token.id for token in tokenizer.added_tokens}
    for role in _ROLES:
        named = names.token(role) or (tokenizer.model.unk_token if role == "unk" else None)
        ids = model.ids(role)
        if named is not None:
            yield from _named_flaws(role, named, ids, vocabulary)
            continue
        for number in ids:
            token = vocabulary.by_id.get(number)
            if token is None:
                yield Flaw(f"{role}_token_id is {number}, which no token has")
            elif added and number not in added:
                yield Flaw(f"{role}_token_id is {number}, which is {_quoted(token)}: an ordinary token")
            elif role == "eos" and token in _NO_ENDS:
                yield Flaw(f"eos_token_id is {number}, which is {_quoted(token)}: that ends nothing")


def _named_flaws(role: str, named: str, ids: list[int], vocabulary: Vocabulary) -> Iterator[Flaw]:
    number = vocabulary.by_token.get(named)
    if number is None:
        message = f"{role}_token is {_quoted(named)}, which the vocabulary lacks"
        yield Flaw(message, fix="add it, or name another")
    elif ids and number not in ids:
        yield Flaw(
            f"{role}_token {_quoted(named)} has id {number} in the tokenizer, and {role}_token_id is "
            f"{_listed(ids)} in the config"
        )


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:_SHOWN]))


def _quoted(token: str) -> str:
    return f"'{printable(token, 40)}'"
