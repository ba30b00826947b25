// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

// FuzzConvert checks arbitrary input. Each object must be converted or mentioned in a remark.
// Remarks must be single printable lines. Converting the result again must yield nothing.
func FuzzConvert(f *testing.F) {
	f.Add([]byte("apiVersion: nodes.lailin.xyz/v1\nkind: NodePool\nmetadata: {name: worker, labels: {a: b}}\nspec: {labels: {a: b}, taints: [{key: a, effect: NoExecute}], handler: runc}"), "", false)
	f.Add([]byte("apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: web, namespace: shop}\nspec: {deploymentname: web, enabled: true, schedule: TZ=UTC 0 0 3 * * *}\n---\n"+
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, annotations: {mtsre.meitu.com/eru: 'true'}}"), "Asia/Shanghai", true)
	f.Add([]byte("apiVersion: nodes.lailin.xyz/v1\nkind: NodePool\nmetadata: {name: 'w\u202eorker\x1b[31m', labels: [1], annotations: 7}\nspec: {labels: 1e400, taints: {}, handler: null}"), "x", false)
	f.Add([]byte("apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: 1\nspec: &a [*a]"), "", false)
	f.Add([]byte("apiVersion: mtsre.meitu.com/v2\nkind: [Eru]\nmetadata: {name: 5, deletionTimestamp: x, ownerReferences: [7]}"), "", false)
	f.Fuzz(func(t *testing.T, text []byte, zone string, suspended bool) {
		objects, err := read(text)
		if err != nil {
			return
		}
		result := Convert(objects, Options{TimeZone: zone, Suspended: suspended})
		told := map[string]bool{}
		for _, r := range result.Remarks {
			if line := r.String(); strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' }) {
				t.Errorf("a remark is not to be shown: %q", line)
			}
			told[r.Object] = true
		}
		for _, c := range result.ManualSteps {
			if strings.ContainsAny(c.Object+c.Line, "\n\r\x1b") {
				t.Errorf("a command has more than one line: %q", c)
			}
			told[c.Object] = true
		}
		var out []Object
		for _, line := range [][]any{anys(result.Pools), anys(result.Restarts)} {
			for _, o := range line {
				made, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				again, err := read(made)
				if err != nil {
					t.Fatalf("what came out cannot be read: %v\n%s", err, made)
				}
				out = append(out, again...)
			}
		}
		for _, o := range objects {
			kind := o.GroupVersionKind()
			isMade := slices.ContainsFunc(out, func(m Object) bool {
				return keyOf(m) == keyOf(o) && (m.GetKind() == "NodePool") == (kind == NodePoolKind)
			})
			if (kind == NodePoolKind || kind == EruKind || kind == DeploymentKind && optsIn(o)) && !told[describe(o)] && !isMade {
				t.Errorf("not a word about %s: %+v", describe(o), result)
			}
		}
		again := Convert(out, Options{TimeZone: zone})
		if len(again.Pools)+len(again.Restarts)+len(again.ManualSteps) > 0 {
			t.Errorf("what came out is converted once more: %+v", again)
		}
	})
}

func anys[T any](list []T) []any {
	var result []any
	for _, item := range list {
		result = append(result, item)
	}
	return result
}

// TestHostileTextIsShownHarmless checks that strings in the input can neither control the terminal
// nor terminate a comment in a generated script.
func TestHostileTextIsShownHarmless(t *testing.T) {
	objects, err := read([]byte(`{"apiVersion":"nodes.lailin.xyz/v1","kind":"NodePool","metadata":{"name":"a\u001b[31m\u202eb\nc"}}
---
{"apiVersion":"nodes.lailin.xyz/v1","kind":"NodePool","metadata":{"name":"worker"},"spec":{"labels":{"a":"b"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	objects[1].Source = "old\nrm -r x.yaml"
	result := Convert(objects, Options{})
	if want, got := "left out: NodePool a [31m b c: metadata.name: is not a valid name: lower-case letters, digits, '-' and '.'", result.Remarks[0].String(); got != want {
		t.Errorf("the remark is %q, want %q", got, want)
	}
	if want, got := "NodePool worker (old rm -r x.yaml)", result.ManualSteps[0].Object; got != want {
		t.Errorf("the comment is about %q, want %q", got, want)
	}
	if got := (Remark{Severity: Note, Why: "a\x1b[31m\nb"}).String(); got != "note: a [31m b" {
		t.Errorf("a remark says %q", got)
	}
}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{"web": "web", "": "''", "0 3 * * *": "'0 3 * * *'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "a=b": "a=b"} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) = %s, want %s", word, got, want)
		}
	}
}
