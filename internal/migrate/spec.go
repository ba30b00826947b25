// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	kjson "sigs.k8s.io/json"
)

// readSpec decodes an original object's spec into the struct that `into` points to. It adds a
// remark for each unknown field. If a field has the wrong type, it leaves out the whole object with
// a remark, and returns false.
func readSpec(o Object, into any, r *remarks) bool {
	for _, field := range slices.Sorted(maps.Keys(o.Object)) {
		switch field {
		case "apiVersion", "kind", "metadata", "spec", "status":
		default:
			r.leftOut(field, "the original has no such field", "move it into the spec, if it belongs there")
		}
	}
	text, err := json.Marshal(o.Object["spec"])
	if err != nil {
		r.leftOut("spec", err.Error(), "")
		return false
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		field, why := "spec", err.Error()
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			field, why = "spec."+wrong.Field, "has a value of the wrong type, "+wrong.Value
			if wrong.Field == "" {
				field = "spec"
			}
		}
		r.leftOut(field, why, "correct the type (a text that looks like a number or a boolean needs quotes), and convert it again")
		return false
	}
	for _, err := range unknown {
		r.leftOut("spec", err.Error(), "check the spelling")
	}
	return true
}
