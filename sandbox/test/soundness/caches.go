// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

// caches lists pairs of operators, one with a bug and one without. The bugs show when watch events
// are delayed or missing.
var caches = []Pair{
	{
		Name: "no-expectations", Mistake: "makes again what it has made, as long as its cache does not show it",
		Oracle: "other", Says: "configmaps default/a-*",
		Steps: made + edited, Faults: []string{"Freeze at step 1, configmaps", "DropEvents at step 1, configmaps"},
	},
	{
		Name: "overwrites", Mistake: "writes what its cache has over what another client has written",
		Oracle: "other state", Says: "what another client wrote to it is lost",
		Steps: made, Faults: []string{"Overtake at step 1, update things"},
	},
	{
		Name: "replaced", Mistake: "the same, where a user replaces the object later",
		Oracle: "other state", Says: "what another client wrote to it is lost",
		Steps: made + `
- name: it is replaced
  run: kubectl get thing a -o json > $$.json && kubectl annotate thing a sandbox.tidekeeper.dev/touched- && rm $$.json
`, Faults: []string{"Overtake at step 1, update things.example.com default/a"},
	},
	{
		Name: "observed-too-new", Mistake: "says that it has seen the present generation, and has acted on an older one",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited + `
- name: what it made is removed
  delete: {resource: configmaps, namespace: default, name: a}
`, Faults: []string{"DropEvents at step 2, things.example.com, until step 3", "Freeze at step 2, things.example.com, until step 3"},
	},
	{
		Name: "tombstones", Mistake: "panics when its cache has learnt of a deletion from a list",
		Oracle: "operator failed", Says: "panic",
		Steps: made + gone, Faults: []string{"DropEvents at step 2, things.example.com", "ExpireWatch at step 2, things.example.com"},
	},
	{
		Name: "missed-deletions", Mistake: "does nothing about a deletion that it learns from a list",
		Oracle: "other state", Says: "configmaps default/a: it is there, and should not be",
		Steps: made + gone, Faults: []string{"DropEvents at step 2, things.example.com", "ExpireWatch at step 2, things.example.com"},
	},
	{
		Name: "deleted-meanwhile", Mistake: "does nothing about what is deleted while it does not run",
		Oracle: "other state", Says: "configmaps default/a: it is there, and should not be",
		Steps: made + gone, Faults: []string{"CrashEvent at step 2, things.example.com", "CrashBefore at step 2"},
	},
	{
		Name: "stale-sweep", Mistake: "removes at its start what belongs to objects that an old list does not have",
		Oracle: "other counts", Says: "configmaps default/a: created twice",
		Steps: made + edited, Faults: []string{"StaleStart at step 2, as of step 1", "StaleStart at step 2, things.example.com, as of step 1", "Restart at step 2"},
		Env: listed,
	},
	{
		Name: "watch-ends", Mistake: "does not open its watch again when that has ended",
		Oracle: "", Says: "watch",
		Steps: made + edited, Faults: []string{"CutWatch at step 2, things.example.com", "ExpireWatch at step 2, things.example.com"},
	},
	{
		Name: "watch-skips", Mistake: "opens its watch again as of now, and does not list what was in between",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited, Faults: []string{"CutWatch at step 2, things.example.com", "ExpireWatch at step 2, things.example.com"},
	},
	{
		Name: "two-leaders", Mistake: "makes an object once more when another leads, as its write arrives late",
		Oracle: "other", Says: "configmaps default/a-*",
		Steps: made, Faults: []string{"Pause at step 1, create configmaps", "CrashAfter at step 1, create configmaps"},
	},
	{
		Name: "too-many-pods", Mistake: "a controller of ReplicaSets that trusts its cache",
		Oracle: "invariant broken", Says: "has more pods than the 1 replicas",
		Steps: `
- name: a ReplicaSet is made
  apply: |
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: a, namespace: default}
    spec:
      replicas: 1
      selector: {matchLabels: {app: a}}
      template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}
- name: it is looked at again
  run: kubectl annotate replicaset a looked=again
withoutControllers: [replicaset-controller]
`, Faults: []string{"Freeze at step 1, pods", "DropEvents at step 1, pods"},
	},
}
