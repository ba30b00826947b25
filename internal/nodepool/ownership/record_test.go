// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

// TestRecordFormat checks that the current version can read records in their stored format. The
// JSON in this test must never change, because any older version may have written the records that
// are stored on nodes.
func TestRecordFormat(t *testing.T) {
	const text = `{"gpu":{"taints":{"gpu:NoExecute":"","gpu:NoSchedule":"yes"}},` +
		`"worker":{"labels":{"example.com/zone":"1"},"annotations":{"note":"<a \"b\"> ü"},"taints":{"dedicated:NoSchedule":"worker"}}}`
	want := Record{
		"gpu": Settings{
			setting.TaintKey("gpu", corev1.TaintEffectNoExecute):  "",
			setting.TaintKey("gpu", corev1.TaintEffectNoSchedule): "yes",
		},
		"worker": Settings{
			setting.LabelKey("example.com/zone"):                        "1",
			setting.AnnotationKey("note"):                               `<a "b"> ü`,
			setting.TaintKey("dedicated", corev1.TaintEffectNoSchedule): "worker",
		},
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(text, want.String()); diff != "" {
		t.Errorf("String (-want +got):\n%s", diff)
	}
}

func TestParseRecord(t *testing.T) {
	zone := setting.LabelKey("zone")
	for _, tc := range []struct {
		name string
		text string
		want Record
	}{
		{"no annotation is an empty record", "", Record{}},
		{"null is an empty record", "null", Record{}},
		{"an object without pools is an empty record", " { } ", Record{}},
		{"a pool without settings is not in it", `{"worker":{}}`, Record{}},
		{"nor one whose value is null", `{"worker":null}`, Record{}},
		{"nor one whose labels are null", `{"worker":{"labels":null}}`, Record{}},
		{"fields of later versions are ignored", `{"worker":{"labels":{"zone":"1"},"conditions":["x"]}}`, Record{"worker": {zone: "1"}}},
		{"a label and an annotation with the same key are two settings", `{"worker":{"labels":{"zone":"1"},"annotations":{"zone":"2"}}}`,
			Record{"worker": {zone: "1", setting.AnnotationKey("zone"): "2"}}},
		{"a forged taint without an effect is a key like any other", `{"worker":{"taints":{"gpu":"yes","":"",":":""}}}`,
			Record{"worker": {setting.Key{Kind: setting.Taint, Name: "gpu"}: "yes", setting.Key{Kind: setting.Taint}: "", setting.TaintKey("", ""): ""}}},
		{"names need not be valid", `{"":{"labels":{"":""}}," \u0000 ":{"labels":{"\ud800":"\u2028"}}}`,
			Record{"": {setting.LabelKey(""): ""}, " \x00 ": {setting.LabelKey("\ufffd"): "\u2028"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Parse(tc.text)
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRecordRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"prose":                    "worker was here",
		"a blank":                  " ",
		"half a record":            `{"worker":{"labels":{"zone":"1"}`,
		"a record and more":        `{"worker":{}}{}`,
		"a list":                   `["worker"]`,
		"a text":                   `"worker"`,
		"a pool that is a number":  `{"worker":1}`,
		"labels that are a list":   `{"worker":{"labels":["zone"]}}`,
		"a label that is a number": `{"worker":{"labels":{"zone":1}}}`,
		"one good pool, one bad":   `{"a":{"labels":{"zone":"1"}},"worker":{"taints":true}}`,
		"bytes":                    "\xff\xfe\x00",
		"deep nesting":             strings.Repeat(`{"a":`, 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(text)
			if err == nil {
				t.Fatalf("Parse = %v; want an error", got)
			}
			if len(got) != 0 {
				t.Errorf("Parse returns %v for a text that is not a record", got)
			}
			if want := "read the ownership record"; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %q does not begin with %q", err, want)
			}
		})
	}
}

// TestParseHugeRecord parses a record of 256 KiB, which is the maximum size of an object's
// annotations.
func TestParseHugeRecord(t *testing.T) {
	text := `{"worker":{"labels":{"zone":"` + strings.Repeat("x", 256<<10) + `"}}}`
	r, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	if r.String() != text {
		t.Errorf("a record of %d bytes came back as one of %d", len(text), len(r.String()))
	}
}

func TestRecordText(t *testing.T) {
	if got := (Record{}).String(); got != "" {
		t.Errorf("an empty record is %q; want no text, so that the annotation is removed", got)
	}
	if got := (Record{"worker": {}}).String(); got != "" {
		t.Errorf("a record of a pool without settings is %q; want no text", got)
	}
	r := Record{}
	r.Add("worker", setting.LabelKey("zone"), "1")
	r.Add("worker", setting.LabelKey("zone"), "2")
	if diff := cmp.Diff(Record{"worker": {setting.LabelKey("zone"): "2"}}, r); diff != "" {
		t.Errorf("put twice (-want +got):\n%s", diff)
	}
}

// TestRecordRoundTrip checks that records survive formatting and parsing, and that equal records
// are formatted equally.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordGenerator().Draw(t, "record")
		text := r.String()
		back, err := Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q): %v", text, err)
		}
		if diff := cmp.Diff(r, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("round trip through %s (-want +got):\n%s", text, diff)
		}
		if again := back.String(); again != text {
			t.Fatalf("the same record has two texts:\n%s\n%s", text, again)
		}
	})
}

// TestMaxLength checks that no text is longer than MaxLength says.
func TestMaxLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordGenerator().Draw(t, "record")
		closed := Closed{}
		for pool := range rapid.MapOfN(rapid.String(), rapid.Bool(), 0, 3).Draw(t, "closed for") {
			for key := range rapid.MapOfN(rapid.String(), rapid.Bool(), 0, 3).Draw(t, "taints") {
				closed.With(pool, key, time.Unix(0, 0))
			}
		}
		if text := r.Text(closed); len(text) > r.MaxLength(closed) {
			t.Fatalf("%q has %d bytes, more than the %d that it has at most", text, len(text), r.MaxLength(closed))
		}
	})
}

// recordGenerator generates records with arbitrary valid strings. It leaves out pools without
// settings, because they are not stored.
func recordGenerator() *rapid.Generator[Record] {
	s := rapid.Custom(func(t *rapid.T) setting.Key {
		return setting.Key{Kind: rapid.SampledFrom(setting.Kinds()).Draw(t, "kind"), Name: rapid.String().Draw(t, "key")}
	})
	return rapid.Custom(func(t *rapid.T) Record {
		return Record(rapid.MapOfN(rapid.String(),
			rapid.Custom(func(t *rapid.T) Settings {
				held := Settings{}
				for s, value := range rapid.MapOfN(s, rapid.String(), 1, 5).Draw(t, "holding") {
					held[s] = DigestOf(s, value)
				}
				return held
			}),
			0, 4).Draw(t, "pools"))
	})
}

func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", " ", "[]", "{", `{"worker":{"labels":{"zone":"1"}}}`,
		`{"worker":{"labels":{"zone":"1"},"annotations":{"note":"<&>"},"taints":{"gpu:NoExecute":""}}}`,
		`{"worker":{"LABELS":{"zone":"1"},"labels":{"zone":"2"}},"worker":{}}`,
		`{"":{"taints":{"":"","::":"\ud800"}}}`, "{\"\xff\":{\"labels\":{\"\xfe\":\"\"}}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			if len(r) != 0 {
				t.Fatalf("an error together with a record: %v", r)
			}
			return
		}
		stored := r.String()
		if !utf8.ValidString(stored) {
			t.Fatalf("the API server cannot store %q", stored)
		}
		back, err := Parse(stored)
		if err != nil {
			t.Fatalf("the output of String is not readable: %q: %v", stored, err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("the record of %q changed when stored (-want +got):\n%s", text, diff)
		}
		if again := back.String(); again != stored {
			t.Fatalf("String is not stable: %q, then %q", stored, again)
		}
		for pool, holding := range r {
			if len(holding) == 0 {
				t.Fatalf("pool %q is recorded without settings", pool)
			}
			for s, value := range holding {
				if text := string(value); !strings.HasPrefix(text, hashMark) && len(text) <= maxPlainLength && !r.Owns(s, text) {
					t.Fatalf("%v=%q is recorded, but Owns is false", s, value)
				}
			}
		}
	})
}
