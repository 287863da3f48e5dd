"""Does the model know every token that the tokenizer makes, and do both mean the same by the special ones?

Reads Hugging Face's `tokenizer.json` and `config.json`, and `tokenizer_config.json` where it lies beside the
first: only that one says which token ends a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from wattline.checks.preflight.asking import Asking, Check, Outcome
from wattline.checks.preflight.data.vocabulary import (
    Flaw,
    ModelConfig,
    TokenizerConfig,
    TokenizerFile,
    Vocabulary,
    special_flaws,
    vocabulary_flaws,
)
from wattline.decoding import decode_json
from wattline.errors import UnavailableError
from wattline.units import format_bytes

# The largest in use, for 262,144 tokens, has 33 MB.
_LARGEST_TOKENIZER_BYTES = 128 << 20
_LARGEST_CONFIG_BYTES = 4 << 20
_Kind = TypeVar("_Kind", TokenizerFile, ModelConfig, TokenizerConfig)
_AGAIN = "write it again with save_pretrained()"


class _UnreadableError(UnavailableError):
    def __init__(self, file: str, message: str, hint: str) -> None:
        super().__init__(f"{file} {message}", hint=hint)
        self.file = file


def check_tokenizer(asking: Asking) -> Iterator[Check]:
    wanted = asking.pipeline.tokenizer
    if wanted is None:
        return
    if wanted.file.endswith(".model"):
        yield _file("skip", wanted.file, "SentencePiece's own format is not read; name a tokenizer.json")
        return
    file, config = asking.folder / wanted.file, asking.folder / wanted.config
    beside = file.with_name("tokenizer_config.json")
    try:
        tokenizer = _read(file, wanted.file, TokenizerFile, _LARGEST_TOKENIZER_BYTES)
        model = _read(config, wanted.config, ModelConfig, _LARGEST_CONFIG_BYTES)
        names = TokenizerConfig()
        if beside.is_file():
            beside_name = beside.relative_to(asking.folder).as_posix()
            names = _read(beside, beside_name, TokenizerConfig, _LARGEST_CONFIG_BYTES)
    except _UnreadableError as error:
        yield _file("fail", error.file, error.message, error.hint or "")
        return
    vocabulary = Vocabulary.of(tokenizer)
    if not vocabulary.by_id:
        yield _file("fail", wanted.file, f"{wanted.file} has no vocabulary", _AGAIN)
        return
    yield _file("pass", wanted.file, f"{len(vocabulary.by_id):,} tokens")
    model = model.innermost()
    if model.vocab_size is None:
        yield _said("tokenizer.vocabulary", "skip", f"{wanted.config} says no vocab_size", wanted.config)
    else:
        fine = f"{len(vocabulary.by_id):,} tokens in a vocabulary of {model.vocab_size:,}"
        flaws = vocabulary_flaws(vocabulary, model.vocab_size)
        yield from _told("tokenizer.vocabulary", list(flaws), fine, wanted.config)
    fine = "special tokens have the same ids in both"
    flaws = special_flaws(vocabulary, tokenizer, model, names)
    yield from _told("tokenizer.special", list(flaws), fine, wanted.config)


def _told(check: str, flaws: list[Flaw], fine: str, file: str) -> Iterator[Check]:
    for flaw in flaws:
        yield _said(check, flaw.outcome, flaw.message, file, flaw.fix)
    if not flaws:
        yield _said(check, "pass", fine, file)


def _file(outcome: Outcome, file: str, message: str, fix: str = "") -> Check:
    return _said("tokenizer.file", outcome, message, file, fix)


def _said(check: str, outcome: Outcome, message: str, file: str, fix: str = "") -> Check:
    return Check(check=check, outcome=outcome, message=message, fix=fix, file=file)


def _read(path: Path, name: str, kind: type[_Kind], most_bytes: int) -> _Kind:
    try:
        with path.open("rb") as file:
            raw = file.read(most_bytes + 1)
    except OSError as error:
        hint = f"put it at {name}, or name the right file under tokenizer"
        raise _UnreadableError(name, f"cannot be read: {error.strerror or error}", hint) from error
    if len(raw) > most_bytes:
        raise _UnreadableError(name, f"has more than {format_bytes(most_bytes)}", "is it the right file?")
    try:
        return decode_json(raw, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _UnreadableError(name, f"is malformed: {error}", _AGAIN) from error
