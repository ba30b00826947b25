// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import "strings"

// kinds lists pairs of operators, one with a bug and one without. The pairs concern objects and
// status fields that comparisons treat specially, operators that never rest, and operators whose
// result varies between runs.
var kinds = []Pair{
	{
		Name: "system-namespace", Mistake: "says that all is ready, and then makes it, in kube-system",
		Oracle: "other state", Says: "configmaps kube-system/a: it is missing",
		Steps: strings.ReplaceAll(made, "namespace: default", "namespace: kube-system"), Faults: []string{"CrashAfter at step 1"},
	},
	{
		Name: "endpoint-slice", Mistake: "the same with an EndpointSlice",
		Oracle: "other state", Says: "endpointslices.discovery.k8s.io default/a: it is missing",
		Steps: made, Faults: []string{"CrashAfter at step 1"},
	},
	{
		Name: "other-kind", Mistake: "the same with a custom resource of another operator",
		Oracle: "other state", Says: "parts.parts.example.com default/a: it is missing",
		Steps: made, Install: parts, Faults: []string{"CrashAfter at step 1"},
	},
	{
		Name: "api-service", Mistake: "the same, where an APIService is installed that nothing serves",
		Oracle: "other state", Says: "configmaps default/a: it is missing",
		Steps: made, Install: apiService, Faults: []string{"CrashAfter at step 1"},
	},
	{
		Name: "pod-condition", Mistake: "says that all is ready, and then sets a condition of a pod",
		Oracle: "other state", Says: "example.com/Fenced",
		Steps:  "- apply: '{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default}, spec: {containers: [{name: a, image: a}]}}'\n" + made + "nodes: 1\n",
		Faults: []string{"CrashAfter at step 2"},
	},
	{
		Name: "node-condition", Mistake: "says that all is ready, and then sets a condition of a node",
		Oracle: "other state", Says: "example.com/DiskChecked",
		Steps: made + "nodes: 1\n", Faults: []string{"CrashAfter at step 1"},
	},
	{
		Name: "observed-behind", Mistake: "does not try again to say that it has seen an edit",
		Oracle: "other state", Says: "status.observedGeneration is another one, not the present one",
		Steps: made + edited, Faults: []string{"ServerError at step 2, update things.example.com/status", "Conflict at step 2"},
	},
	{
		Name: "ready-early", Mistake: "says for a moment that all is ready, when what it needs was refused",
		Oracle: "invariant broken", Says: "ready means that it is there",
		Steps: made + `
invariants:
- name: ready means that it is there
  resource: things.example.com
  rule: "!has(object.status) || !has(object.status.ready) || !object.status.ready || objects['configmaps'].exists(c, c.metadata.name == object.metadata.name)"
`, Faults: []string{"Invalid at step 1, create configmaps", "Throttle at step 1"},
	},
	{
		Name: "either-end", Mistake: "comes to one of two ends, whichever comes first; its twin makes a password",
		Oracle: "different ends", Says: "data.replicas",
		Steps: made, Faults: []string{"Restart at step 1"}, Undisturbed: true,
	},
	{
		Name: "second-run", Mistake: "has a data race in the second undisturbed run only",
		Oracle: "operator failed", Says: "WARNING: DATA RACE",
		Steps: made, Faults: []string{"Restart at step 1"}, Undisturbed: true,
	},
	{
		Name: "fixed-port", Mistake: "serves at a fixed port of this machine's network, and gives up what was refused",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited, Faults: []string{"ServerError at step 2, update configmaps", "FreezeLong at step 2, things.example.com"},
		Flags: []string{"--host-network", "--hold", "2s"},
	},
	{
		Name: "heartbeat", Mistake: "updates an object without a change each two seconds, and gives up what was refused",
		Oracle: "other state", Says: "configmaps default/a: it is missing",
		Steps: made, Faults: []string{"ServerError at step 1, create configmaps", "CrashAfter at step 1, create configmaps"},
	},
	{
		Name: "toggles", Mistake: "has a status that changes each two seconds, and gives up what was refused",
		Oracle: "other state", Says: "configmaps default/a: it is missing",
		Steps: made, Faults: []string{"ServerError at step 1, create configmaps", "CrashAfter at step 1, create configmaps"},
	},
	{
		Name: "annotations", Mistake: "hands annotations on to what it makes, and gives up when another client was first",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited, Faults: []string{"Overtake at step 2, update configmaps", "FreezeLong at step 2, things.example.com"}, Flags: []string{"--hold", "2s"},
	},
	{
		Name: "deletes-always", Mistake: "deletes with each look what is not there, and gives up when that fails",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited, Faults: []string{"ServerError at step 2, delete configmaps", "CrashAfter at step 2, delete configmaps"},
	},
}

const (
	// parts is the CustomResourceDefinition of the kind Part, which belongs to a fictional second
	// operator.
	parts = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.parts.example.com}
spec:
  group: parts.example.com
  scope: Namespaced
  names: {kind: Part, plural: parts}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
	apiService = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: default, name: metrics}
`
)
