"""The list of golden checkpoints that make_goldens.py makes, one Variant each.

A new family adds a table and a function to one of golden_variants_*.py, and
its line in all_variants(). Sizes are odd on purpose (vocabulary 51, intermediate 20): not multiples
of any vector width. Two layers, three where the kinds of layer alternate. To see a field's meaning,
read Variant; why a variant exists stands above it unless its name says so.
"""

import golden_variants_experts as experts
import golden_variants_gemma as gemma
import golden_variants_gemma3n as gemma3n
import golden_variants_gemma4 as gemma4
import golden_variants_gpt as gpt
import golden_variants_hybrids as hybrids
import golden_variants_indexed as indexed
import golden_variants_kin as kin
import golden_variants_late as late
import golden_variants_llama as llama
import golden_variants_mamba as mamba


def all_variants():
    for source in (
        llama.llama_variants,
        llama.mistral_variants,
        llama.mistral3_variants,
        llama.ministral3_variants,
        llama.qwen2_variants,
        llama.qwen3_variants,
        llama.internlm2_variants,
        gpt.gpt_neox_variants,
        gpt.falcon_variants,
        gpt.mpt_variants,
        gpt.opt_variants,
        gpt.bloom_variants,
        llama.mixtral_variants,
        llama.glm_variants,
        kin.phi3_variants,
        llama.phimoe_variants,
        kin.qwen3_moe_variants,
        kin.smollm3_variants,
        kin.granite_variants,
        experts.granitemoe_variants,
        experts.granitemoeshared_variants,
        kin.olmo_variants,
        kin.cohere_variants,
        kin.stablelm_variants,
        kin.starcoder2_variants,
        gpt.gpt2_variants,
        experts.gpt_oss_variants,
        experts.llama4_text_variants,
        experts.llama4_variants,
        experts.deepseek_v2_variants,
        experts.deepseek_v3_variants,
        indexed.deepseek_v32_variants,
        indexed.glm_moe_dsa_variants,
        late.glm4_moe_variants,
        late.kimi_k2_variants,
        late.minimax_m2_variants,
        late.seed_oss_variants,
        late.exaone4_variants,
        late.hunyuan_v1_dense_variants,
        late.hunyuan_v1_moe_variants,
        late.ernie4_5_variants,
        late.ernie4_5_moe_variants,
        late.mistral4_variants,
        late.apertus_variants,
        gemma.gemma_variants,
        gemma.gemma2_variants,
        gemma.gemma3_variants,
        gemma3n.gemma3n_variants,
        gemma4.gemma4_variants,
        hybrids.hybrid_variants,
        mamba.mamba_variants,
    ):
        yield from source()
