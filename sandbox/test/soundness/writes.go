// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

// writes lists pairs of operators, one with a bug and one without. The bugs show after a failed
// write, or if the process is killed after a write.
var writes = []Pair{
	{
		Name: "done-first", Mistake: "says that all is ready, and then makes it",
		Oracle: "other state", Says: "configmaps default/a: it is missing",
		Steps: made, Faults: []string{"CrashAfter at step 1", "ServerError at step 1, create"},
	},
	{
		Name: "generated-names", Mistake: "notes what it has made by a generated name after it has made it",
		Oracle: "other state", Says: "configmaps default/a-*",
		Steps: made, Faults: []string{"CrashAfter at step 1", "LoseAnswer at step 1"},
	},
	{
		Name: "roles", Mistake: "makes one of three objects the leader, and after a start another one",
		Oracle: "other state", Says: "leader",
		Steps: made, Faults: []string{"CrashAfter at step 1, create configmaps"},
	},
	{
		Name: "restless", Mistake: "writes all the time after an error",
		Oracle: "not at rest", Says: "configmaps default/a-clock",
		Steps: made, Faults: []string{"ServerError at step 1"},
	},
	{
		Name: "impatient", Mistake: "tries again at once, and from its cache, when another client was first",
		Oracle: "not at rest", Says: "refused",
		Steps: made + edited, Faults: []string{"Overtake at step 2"},
	},
	{
		Name: "asks-fast", Mistake: "reads a hundred times a second after an error",
		Oracle: "not at rest", Says: "reads",
		Steps: made, Faults: []string{"ServerError at step 1"},
	},
	{
		Name: "gives-up", Mistake: "does not try again what has failed",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited, Faults: []string{"ServerError at step 2, update configmaps", "Conflict at step 2, update configmaps", "Invalid at step 2, update configmaps"},
	},
	{
		Name: "swallows", Mistake: "takes a conflict for success",
		Oracle: "other state", Says: "data.message is one, not two",
		Steps: made + edited, Faults: []string{"Conflict at step 2, update configmaps", "Overtake at step 2, update configmaps"},
	},
	{
		Name: "nil-object", Mistake: "reads on in an object that it did not get",
		Oracle: "operator failed", Says: "panic",
		Steps: made, Faults: []string{"ServerError at step 1, create configmaps", "Throttle at step 1"},
	},
	{
		Name: "migrates-once", Mistake: "notes that it has migrated before it has",
		Oracle: "other state", Says: "configmaps default/new: it is missing",
		Steps: made, Faults: []string{"CrashAfter at step 0, create configmaps", "CrashAfter at step 1"},
	},
	{
		Name: "exits", Mistake: "ends when a write is refused",
		Oracle: "operator failed", Says: "ended by itself",
		Steps: made, Faults: []string{"ServerError at step 1", "Unavailable at step 1"},
	},
}
