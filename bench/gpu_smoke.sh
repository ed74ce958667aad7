#!/bin/sh
# A first look on a card: the product's own commands on the bundled demo, and what they say of the machine.
set -eu
llmtui="python3 -m llmtui.tui.commands"
$llmtui gpus
$llmtui forecast opencalm-7b-dolly-ja
$llmtui run demo --set training.max_steps=60 --set training.eval_steps=30 --set checkpoints.save_steps=30
$llmtui show last
