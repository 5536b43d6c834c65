"""Make a random Llama of 2.7 million parameters with its own tokenizer, and save it.

Runs inside the environment of transformers. Weights are random: what it writes means nothing,
but every server runs it as it would run a real one.
"""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = [
    "The river turned twice before it reached the mill, and nobody in the village knew why.",
    "She counted the boxes again: seven on the left, nine on the right, one in her hands.",
    "When the rain stopped they walked along the wall and talked about the price of bread.",
    "A clock that runs fast is still a clock, he said, if you know by how much it is wrong.",
]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<|pad|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    raw.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        chat_template=TEMPLATE,
    )


def main(target: str) -> None:
    torch.manual_seed(0)
    words = tokenizer()
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=64,
        max_position_embeddings=4096,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        torch_dtype="bfloat16",
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        # A score of 0 is never the highest: marks and parts of characters stay unsaid. So every
        # token is text, as with a real model.
        for text, number in words.get_vocab().items():
            if not (text.isascii() and text.isalnum()):
                model.lm_head.weight[number] = 0.0
    model.to(torch.bfloat16).save_pretrained(target)
    words.save_pretrained(target)


if __name__ == "__main__":
    main(sys.argv[1])
