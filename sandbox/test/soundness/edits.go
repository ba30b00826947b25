// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

// edits lists pairs of operators, one with a bug and one without. The bugs show when users edit an
// object's spec. When fuzz makes such edits, it must find the bug in the first operator, and
// nothing in the second operator.
var edits = []Pair{
	{
		Name: "empty-list", Mistake: "takes it that a list has an item",
		Oracle: "operator failed", Says: "panic: runtime error: index out of range",
		Edits: []string{"spec.items: empty", "spec.items: removed"},
	},
	{
		Name: "divides", Mistake: "divides by a number that may be 0",
		Oracle: "operator failed", Says: "panic: runtime error: integer divide by zero",
		Edits: []string{"spec.count: zero", "spec.count: removed", "spec.count: one less"},
	},
	{
		Name: "fatal", Mistake: "ends where a text is not a duration",
		Oracle: "operator failed", Says: "ended by itself",
		Edits: []string{"spec.interval: a duration without a unit"},
	},
	{
		Name: "stuck", Mistake: "does nothing any more after a text that is not a duration",
		Oracle: "", Says: "things.example.com",
		Edits: []string{"spec.interval: a duration without a unit"},
	},
	{
		Name: "leftover", Mistake: "does not remove what is not wanted any more",
		Oracle: "not undone", Says: "configmaps default/market-extra",
		Edits: []string{"spec.extra: "},
	},
	{
		Name: "spins", Mistake: "writes all the time while a number is 0",
		Oracle: "not at rest", Says: "things.example.com",
		Edits: []string{"spec.count: zero", "spec.count: removed", "spec.count: one less"},
	},
	{
		Name: "sticky", Mistake: "does not see another message",
		Oracle: "other than a new one", Says: "data.message",
		Edits: []string{"spec.message: with a suffix"},
	},
	{
		Name: "writes-back", Mistake: "does not see another message; its types write back what users wrote, without what is zero",
		Oracle: "other than a new one", Says: "data.message",
		Edits: []string{"spec.message: with a suffix", "spec.count: zero"},
	},
	{
		Name: "hasty", Mistake: "says that it has seen an edit, and then does what that asks for",
		Oracle: "other state", Says: "data.message is open, not open2",
		Edits: []string{"spec.message: with a suffix"}, Flags: []string{"--faults"},
	},
	{
		Name: "rigid", Mistake: "gives up what is edited while it is busy with a new object",
		Oracle: "not reached", Says: "status.observedGeneration is 0",
		Edits: []string{"spec.message: with a suffix"}, Flags: []string{"--busy"},
	},
	{
		Name: "label", Mistake: "makes an object of a text that the API server refuses",
		Oracle: "not reached: the API server refuses what the operator writes", Says: "422",
		Edits: []string{"spec.message: a path", "spec.message: another script"},
	},
	{
		Name: "silent", Mistake: "says nothing of a number that is too large",
		Oracle: "not reached", Says: "observedGeneration",
		Edits: []string{"spec.count: one more"},
	},
	{
		Name: "recreates", Mistake: "makes an object again, and forgets what it had written to it before",
		Oracle: "not undone", Says: "data.serial",
		Edits: []string{"spec.message: with a suffix"},
	},
	{
		Name: "partial", Mistake: "leaves behind what it has made before it saw that a spec is wrong",
		Oracle: "does not heal", Says: "configmaps default/market-next",
		Edits: []string{"spec.interval: a duration without a unit"},
	},
}

// sample is the manifest of the object that fuzz edits: a Thing, the operators' custom resource.
const sample = `
apiVersion: example.com/v1
kind: Thing
metadata: {name: market, namespace: default}
spec:
  message: open
  interval: 5s
  count: 1
  items: [bread]
`
