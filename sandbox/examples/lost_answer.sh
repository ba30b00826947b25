#!/bin/sh
# Copyright The Tidekeeper Authors.
# SPDX-License-Identifier: Apache-2.0
#
# A test of an operator, in shell: does it survive that the answer to a write is lost?
# Its arguments are the command that starts the operator, which gets KUBECONFIG.
# Needs sandbox and curl. Put your own objects in the place of the ConfigMap and the Secret.
set -eu

dir=$(mktemp -d)
# Gone when this script is, even if that is killed.
sandbox up --detach --owner $$ --nodes 0 --data-dir "$dir" >"$dir.log"
operator= proxy=
trap 'kill $operator $proxy 2>/dev/null || true; sandbox down --data-dir "$dir" >>"$dir.log"; rm -rf "$dir" "$dir.log"' EXIT
trap 'exit 1' INT TERM

# The proxy stands between the operator and the API server.
sandbox proxy --data-dir "$dir" --write-kubeconfig "$dir/proxied" --log "$dir/requests" --control "$dir/control" 2>"$dir/proxy" &
proxy=$!
until grep -q 'kubeconfig' "$dir/proxy"; do kill -0 $proxy; sleep 0.1; done
KUBECONFIG="$dir/proxied" "$@" 2>"$dir/operator" &
operator=$!

# The API server does what the operator asks for, and the operator does not hear of it.
curl -sS --fail-with-body -o "$dir/answer" --unix-socket "$dir/control" --data-binary @- http://proxy/rules <<'RULES'
rules:
- name: lost
  match: {verbs: [create], resources: [secrets]}
  count: {times: 1}
  fault: {kind: LoseAnswer}
RULES

sandbox kubectl --data-dir "$dir" apply -f - <<'ORDER'
apiVersion: v1
kind: ConfigMap
metadata: {name: bread, namespace: default, labels: {shop: order}}
data: {item: bread, state: new}
ORDER

# Until the fault has happened, the operator has had its time, and nothing is written any more.
curl -sS --fail-with-body -o "$dir/answer" --unix-socket "$dir/control" "http://proxy/rules/lost?fired=1&timeout=30s"
sandbox kubectl --data-dir "$dir" wait configmap bread --for=jsonpath='{.data.state}'=done --timeout=30s || true
sandbox status --data-dir "$dir" --until-quiet 2s

state=$(sandbox kubectl --data-dir "$dir" get configmap bread -o 'jsonpath={.data.state}')
secrets=$(sandbox kubectl --data-dir "$dir" get secrets -o name)
[ "$state" = done ] || { echo "the order is $state"; cat "$dir/operator"; exit 1; }
[ "$secrets" = secret/receipt-bread ] || { echo "the receipts are: $secrets"; exit 1; }
echo "It survives a lost answer."
