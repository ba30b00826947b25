// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"tidekeeper.dev/tidekeeper/sandbox/internal/words"
)

// TestMayRemoveAnnotations checks that only commands and patches of annotations may remove another
// client's annotation. In any other step, the operator is responsible for a lost annotation.
func TestMayRemoveAnnotations(t *testing.T) {
	w, err := Parse([]byte(`
steps:
- run: kubectl replace -f thing.yaml
- patch: {resource: configmaps, namespace: default, name: a, merge: {metadata: {annotations: null}}}
- patch: {resource: configmaps, namespace: default, name: a, merge: {metadata: {labels: {a: b}}}}
- patch: {resource: configmaps, namespace: default, name: a, merge: {data: {annotations: two}}}
- apply: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false, false, false} {
		if got := w.Steps[i].MayRemoveAnnotations(); got != want {
			t.Errorf("%s: %t, want %t", words.OneLine(w.Steps[i].Name), got, want)
		}
	}
}
