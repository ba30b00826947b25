// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const everything = `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  status: {type: object, properties: {ready: {type: boolean}}}
  spec:
    type: object
    required: [mode]
    x-kubernetes-validations:
    - rule: "self.level <= 40 && self.level >= -5"
    - rule: "this is not CEL"
    properties:
      mode: {type: string, enum: [a, b]}
      level: {type: integer}
      bounded: {type: integer, minimum: 2, maximum: 9, exclusiveMaximum: true}
      replicas: {type: integer, format: int32}
      port: {type: integer}
      ratio: {type: number}
      enabled: {type: boolean}
      text: {type: string, maxLength: 5, minLength: 2}
      code: {type: string, pattern: '^[a-z]{2}-[0-9]+$'}
      grace: {type: string}
      pull: {type: string}
      imagePullPolicy: {type: string}
      updateStrategy: {type: string}
      gracePeriod: {type: string}
      schedule: {type: string}
      when: {type: string, format: date-time}
      memory: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'}
      surge: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      list: {type: array, maxItems: 3, items: {type: object, properties: {name: {type: string}, size: {type: integer}}}}
      labels: {type: object, maxProperties: 3, additionalProperties: {type: string}}
      selector: {type: object, properties: {matchLabels: {type: object, additionalProperties: {type: string}}, matchExpressions: {type: array, items: {type: object}}}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      absent: {type: object, required: [must], properties: {must: {type: string}, may: {type: integer, maximum: 7}}}
`

const sampleOfEverything = `
apiVersion: example.com/v1
kind: Any
metadata: {name: a}
spec:
  mode: a
  level: 7
  bounded: 5
  replicas: 3
  port: 80
  ratio: 0.5
  enabled: true
  text: abc
  code: ab-1
  grace: x
  pull: IfNotPresent
  imagePullPolicy: IfNotPresent
  updateStrategy: Rolling
  gracePeriod: 5s
  schedule: "@daily"
  when: "2026-01-01T00:00:00Z"
  memory: 1Gi
  surge: 1
  list: [{name: one, size: 1}, {name: two, size: 2}]
  labels: {example.com/a: b}
  selector: {matchLabels: {a: b}}
  free: {deep: [{number: 1}]}
status: {ready: true}
`

func parse(t *testing.T, schema, sample string) (*Schema, map[string]any) {
	t.Helper()
	s := &Schema{}
	if err := yaml.UnmarshalStrict([]byte(schema), s); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return s, object
}

// TestOf checks that the edits include the values suggested by a schema, with their classes.
func TestOf(t *testing.T) {
	schema, sample := parse(t, everything, sampleOfEverything)
	byName := map[string]Edit{}
	for _, e := range Of(schema, sample) {
		if _, twice := byName[e.String()]; twice {
			t.Errorf("%s: there are two edits of this name", e)
		}
		byName[e.String()] = e
	}
	for _, tc := range []struct {
		name  string
		class Class
		value string
	}{
		{"spec: empty", Empty, `{}`},
		{"spec.mode: b", Plausible, `"b"`},
		{"spec.mode: a number", Wrong, `7`},
		{"spec.level: 41, as a rule has 40", Limit, `41`},
		{"spec.level: -6, as a rule has -5", Limit, `-6`},
		{"spec.level: the most of 32 bits", Beyond, `2147483647`},
		{"spec.bounded: the least", Limit, `2`},
		{"spec.bounded: below the least", Beyond, `1`},
		{"spec.bounded: the most", Limit, `8`},
		{"spec.bounded: above the most", Beyond, `9`},
		{"spec.replicas: two", Plausible, `2`},
		{"spec.replicas: negative", Beyond, `-1`},
		{"spec.port: a port too large", Beyond, `65536`},
		{"spec.ratio: negative", Beyond, `-1.5`},
		{"spec.enabled: its opposite", Plausible, `false`},
		{"spec.text: as long as may be", Limit, `"abcxx"`},
		{"spec.text: one too short", Beyond, `"x"`},
		{"spec.code: another text", Plausible, `"aa-1"`},
		{"spec.grace: with a suffix", Plausible, `"x2"`},
		{"spec.pull: no constant", Wrong, `"IfNotPresent2"`},
		{"spec.updateStrategy: no constant", Wrong, `"Rolling2"`},
		{"spec.imagePullPolicy: always", Plausible, `"Always"`},
		{"spec.imagePullPolicy: no policy", Wrong, `"Sometimes"`},
		{"spec.gracePeriod: a negative duration", Beyond, `"-5s"`},
		{"spec.schedule: a day that never comes", Limit, `"0 0 31 2 *"`},
		{"spec.when: another text", Plausible, `"2030-01-02T03:04:05Z"`},
		{"spec.memory: a negative quantity", Beyond, `"-1"`},
		{"spec.surge: a percentage", Plausible, `"50%"`},
		{"spec.list: empty", Empty, `[]`},
		{"spec.list: without its first item", Plausible, `[{"name":"two","size":2}]`},
		{"spec.list: one more item", Plausible, `[{"name":"one","size":1},{"name":"two","size":2},{"name":"one2","size":1}]`},
		{"spec.list: one too many", Beyond, `[{"name":"one","size":1},{"name":"two","size":2},{"name":"one2","size":1},{"name":"one3","size":1}]`},
		{"spec.list[0].size: negative", Beyond, `-1`},
		{`spec.labels: a key with blanks`, Hostile, `{"a b":"b","example.com/a":"b"}`},
		{`spec.labels["example.com/a"]: empty`, Empty, `""`},
		{`spec.labels: one entry too many`, Beyond, `{"example.com/a":"b","example.com/added-0":"b","example.com/added-1":"b","example.com/added-2":"b"}`},
		{`spec.labels: in conflict with spec.selector.matchLabels`, Wrong, `{"a":"conflict","example.com/a":"b"}`},
		{"spec.selector: with a field that no one knows", Hostile, `{"matchLabels":{"a":"b"},"noSuchField":{"deep":[1,"a",null]}}`},
		{"spec.level: more than 64 bits hold", Beyond, `1e+30`},
		{"spec.list: with an item that is a list", Wrong, `[{"name":"one","size":1},{"name":"two","size":2},[]]`},
		{"spec.list: as many as may be, all the same", Wrong, `[{"name":"one","size":1},{"name":"one","size":1},{"name":"one","size":1}]`},
		{"spec.text: with blanks around", Hostile, `"  abc  "`},
		{"spec.text: with letters that look alike", Hostile, `"аbс"`},
		{"spec.selector: a selector of everything", Empty, `{}`},
		{"spec.free.deep[0].number: one more", Plausible, `2`},
		{"spec.absent: added", Plausible, `{"must":"added"}`},
		{"spec.absent.must: empty", Empty, `{"must":""}`},
		{"spec.absent.may: above the most", Beyond, `{"may":8,"must":"added"}`},
	} {
		e, is := byName[tc.name]
		value := jsonOf(t, e.Value)
		if !is || e.Class != tc.class || value != tc.value || e.Remove {
			t.Errorf("%s: %s %s, removes: %t, there: %t; want %s %s", tc.name, e.Class, value, e.Remove, is, tc.class, tc.value)
		}
	}
	for _, name := range []string{"spec: absent", "spec.list[0]: absent", `spec.labels["example.com/a"]: absent`} {
		if !byName[name].Remove {
			t.Errorf("%s is not among the edits, or removes nothing", name)
		}
	}
	for name, e := range byName {
		if e.Class == Plausible && strings.HasSuffix(fmt.Sprint(e.Value), "IfNotPresent2") {
			t.Errorf("%s: it is not a policy", name)
		}
		if !strings.HasPrefix(name, "spec") {
			t.Errorf("%s is edited, which users do not write", name)
		}
		if strings.HasPrefix(name, "spec.replicas: the most of 32") {
			t.Errorf("%s: that makes as many objects", name)
		}
	}
}

// TestEdits checks that every edit changes the sample only at the edit's path and can be encoded
// and decoded, and that the order of edits is deterministic.
func TestEdits(t *testing.T) {
	schema, sample := parse(t, everything, sampleOfEverything)
	_, before := parse(t, everything, sampleOfEverything)
	all, again := Of(schema, sample), Of(schema, sample)
	if len(all) < 200 {
		t.Errorf("there are only %d edits", len(all))
	}
	for i, e := range all {
		edited, ok := e.Apply(sample)
		if !ok || reflect.DeepEqual(edited, sample) {
			t.Errorf("%s: it changes nothing", e)
		}
		if !reflect.DeepEqual(e, again[i]) {
			t.Errorf("edit %d is %s, and then %s", i, e, again[i])
		}
		text, err := yaml.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var read Edit
		if err := yaml.UnmarshalStrict(text, &read); err != nil {
			t.Fatalf("%s: %v\n%s", e, err, text)
		}
		if readEdited, ok := read.Apply(sample); !ok || jsonOf(t, readEdited) != jsonOf(t, edited) {
			t.Errorf("%s: it is read as another edit:\n%s", e, text)
		}
		if restored, there := e.Path.Get(sample); there && !e.Remove {
			if back, ok := e.Path.Set(edited, restored); !ok || !reflect.DeepEqual(back, any(sample)) {
				t.Errorf("%s: it changes more than %s", e, e.Path)
			}
		}
	}
	if !reflect.DeepEqual(sample, before) {
		t.Error("the sample itself was changed")
	}
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOrder checks that plausible values of properties in the sample come first.
func TestOrder(t *testing.T) {
	schema, sample := parse(t, everything, sampleOfEverything)
	all := Of(schema, sample)
	first := map[string]int{}
	for i, e := range all {
		if _, seen := first[e.Field]; !seen {
			first[e.Field] = i
		}
	}
	if first["spec.mode"] > 30 || first["spec.labels"] > 30 || first["spec.absent"] < first["spec.mode"] {
		t.Errorf("the first edits are of %v", slices.SortedFunc(maps.Keys(first), func(a, b string) int { return first[a] - first[b] }))
	}
	if all[0].Class != Plausible {
		t.Errorf("the first edit is %s, of class %s", all[0], all[0].Class)
	}
}

func TestPlausible(t *testing.T) {
	for _, tc := range []struct{ schema, want string }{
		{`{type: string}`, `"added"`},
		{`{type: string, default: d}`, `"d"`},
		{`{type: string, enum: ["", e]}`, `"e"`},
		{`{type: string, format: ipv4}`, `"192.0.2.1"`},
		{`{type: string, minLength: 8}`, `"addedxxx"`},
		{`{type: string, maxLength: 2}`, `"ad"`},
		{`{type: integer, minimum: 5}`, `5`},
		{`{type: integer, maximum: -5}`, `-5`},
		{`{type: integer, minimum: 5, exclusiveMinimum: true}`, `6`},
		{`{type: boolean}`, `true`},
		{`{type: array, items: {type: string}}`, `["added"]`},
		{`{type: object, additionalProperties: {type: integer}}`, `{"added":1}`},
		{`{type: object, properties: {a: {type: string}, b: {type: string}}, required: [b]}`, `{"b":"added"}`},
		{`{type: object, properties: {a: {type: object}, b: {type: integer}}}`, `{"b":1}`},
		{`{type: string, pattern: '^(?!a)b$'}`, `none`},
		{`{type: string, pattern: '^[a-z]{9}$', maxLength: 3}`, `none`},
	} {
		schema, _ := parse(t, tc.schema, "a: b")
		value, ok := plausible(schema, "any", deepest)
		got := jsonOf(t, value)
		if !ok {
			got = "none"
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.schema, got, tc.want)
		}
	}
}

func TestMatching(t *testing.T) {
	for _, pattern := range []string{
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`, `^\d+%$`, `^(a|b|c)$`, `^arn:aws[a-z-]*:iam::\d{12}:role/.+$`,
		`^[^/]+/[^/]+$`, `.`, `^x?$`, `^(https?|ftp)://\S+$`,
	} {
		text, ok := matching(pattern)
		if !ok || !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%s: %q, %t", pattern, text, ok)
		}
	}
	for _, pattern := range []string{`(`, `^a{1000}{1000}$`, `a^`} {
		if text, ok := matching(pattern); ok {
			t.Errorf("%s: matched by %q", pattern, text)
		}
	}
}

// FuzzOf checks that Of does not panic on any schema, and that every edit can be applied to the
// sample.
func FuzzOf(f *testing.F) {
	f.Add([]byte(everything), []byte(sampleOfEverything))
	f.Add([]byte(`{properties: {spec: {type: array}}}`), []byte(`{spec: []}`))
	f.Add([]byte(`{properties: {spec: {type: string, minLength: -1, maxLength: -2}}}`), []byte(`{spec: {a: 1}}`))
	f.Fuzz(func(t *testing.T, schemaText, sampleText []byte) {
		schema := &Schema{}
		if yaml.Unmarshal(schemaText, schema) != nil {
			return
		}
		text, err := yaml.YAMLToJSON(sampleText)
		if err != nil {
			return
		}
		sample := map[string]any{}
		if utiljson.Unmarshal(text, &sample) != nil {
			return
		}
		for _, e := range Of(schema, sample) {
			if _, ok := e.Apply(sample); !ok {
				t.Errorf("%s has no place in the sample", e)
			}
		}
	})
}
