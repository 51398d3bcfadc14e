# SPDX-License-Identifier: Apache-2.0
"""Writes a model for llama.cpp that is made of noise: two layers, half a megabyte, the same bytes each
time. Its text means nothing, but is the same from every process at temperature 0.

    PYTHONPATH=... python3 tiny_gguf.py FILE      (needs the packages gguf and numpy)
"""

import sys

import gguf
import numpy

WIDTH, HEADS, LAYERS, FEED = 64, 4, 2, 128
PIECES = [" the", " a", " of", " and", " to", " in", " is", " it", " that", " for", " was", " on",
          " are", " as", " with", " they", " be", " at", " one", " have", " this", " from", " by",
          " hot", " word", " but", " what", " some", " we", " can", " out", " other", " were", " all"]
TEMPLATE = ("{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
            "{% endfor %}assistant:")


def add_tokenizer(writer):
    special = ["<unk>", "<s>", "</s>"]
    tokens = special + [f"<0x{byte:02X}>" for byte in range(256)] \
        + [piece.replace(" ", "\u2581") for piece in PIECES]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] \
        + [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(PIECES)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [-float(i) for i in range(len(PIECES))])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    return len(tokens)


def main(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens = add_tokenizer(writer)
    writer.add_vocab_size(tokens)
    noise = numpy.random.default_rng(1)

    def add(name, *shape):
        values = noise.standard_normal(shape).astype(numpy.float32) * 0.2
        writer.add_tensor(name, values if len(shape) > 1 else values * 0 + 1)

    add("token_embd.weight", tokens, WIDTH)
    for i in range(LAYERS):
        add(f"blk.{i}.attn_norm.weight", WIDTH)
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{i}.{part}.weight", WIDTH, WIDTH)
        add(f"blk.{i}.ffn_norm.weight", WIDTH)
        add(f"blk.{i}.ffn_gate.weight", FEED, WIDTH)
        add(f"blk.{i}.ffn_up.weight", FEED, WIDTH)
        add(f"blk.{i}.ffn_down.weight", WIDTH, FEED)
    add("output_norm.weight", WIDTH)
    add("output.weight", tokens, WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
