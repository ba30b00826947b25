// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podconfig

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)

func configMap(data map[string]string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: "7"}, Data: data}
	c.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: noon.Add(-time.Hour)}}, {Time: &metav1.Time{Time: noon}}}
	return c
}

func secret(uid, value string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte(value)}}
	s.Namespace, s.Name, s.UID = "shop", "web", "uid-of-1"
	if uid != "" {
		s.UID = "uid-of-2"
	}
	return s
}

// contentOf returns the content of the given objects, for a pod template with the given encoded
// uses.
func contentOf(t *testing.T, uses string, secrets bool, objects ...any) Content {
	t.Helper()
	records := map[ID]*Record{}
	for _, o := range objects {
		r, err := RecordOf(o)
		if err != nil {
			t.Fatal(err)
		}
		records[r.ID] = r
	}
	parsed, ok := Parse(uses)
	if !ok {
		t.Fatalf("cannot parse %q", uses)
	}
	return ContentOf("shop", parsed, secrets, func(id ID) *Record { return records[id] })
}

func TestContentOf(t *testing.T) {
	ab := configMap(map[string]string{"a": "1", "b": "2"})
	for _, tt := range []struct {
		name     string
		uses     string
		secrets  bool
		one, two []any
		same     bool
	}{
		{name: "the same", uses: "c/web", one: []any{ab}, two: []any{ab.DeepCopy()}, same: true},
		{name: "another value", uses: "c/web", one: []any{ab}, two: []any{configMap(map[string]string{"a": "1", "b": "3"})}},
		{name: "one more key", uses: "c/web", one: []any{ab}, two: []any{configMap(map[string]string{"a": "1", "b": "2", "c": ""})}},
		{name: "values that change places", uses: "c/web", one: []any{ab}, two: []any{configMap(map[string]string{"a": "2", "b": "1"})}},
		{name: "a key that is not used", uses: "c/web/a", one: []any{ab}, two: []any{configMap(map[string]string{"a": "1", "b": "3"})}, same: true},
		{name: "the key that is", uses: "c/web/a", one: []any{ab}, two: []any{configMap(map[string]string{"a": "2", "b": "2"})}},
		{name: "another object", uses: "c/other", one: []any{ab}, two: nil, same: true},
		{name: "deleted", uses: "c/web", one: []any{ab}, two: nil},
		{name: "without the only key", uses: "c/web/a", one: []any{configMap(map[string]string{"b": "2"})}, two: nil, same: true},
		{name: "made again, with the same content", uses: "c/web", one: []any{ab}, two: []any{func() any { c := ab.DeepCopy(); c.UID, c.Labels = "2", map[string]string{"a": "b"}; return c }()}, same: true},
		{
			name: "a value as bytes", uses: "c/web", one: []any{configMap(map[string]string{"a": "1"})}, same: true,
			two: []any{func() any { c := configMap(nil); c.BinaryData = map[string][]byte{"a": []byte("1")}; return c }()},
		},
		{name: "a Secret that does not count", uses: "s/web", one: []any{secret("", "1")}, two: []any{secret("", "2")}, same: true},
		{name: "a Secret", uses: "s/web", secrets: true, one: []any{secret("", "1")}, two: []any{secret("", "2")}},
		{name: "the same Secret", uses: "s/web", secrets: true, one: []any{secret("", "1")}, two: []any{secret("", "1")}, same: true},
		{name: "a Secret that was made again", uses: "s/web", secrets: true, one: []any{secret("", "1")}, two: []any{secret("2", "1")}},
		{
			name: "a release of Helm", uses: "s/web", secrets: true, one: nil, same: true,
			two: []any{func() any { s := secret("", "1"); s.Type = releaseType; return s }()},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := contentOf(t, tt.uses, tt.secrets, tt.one...).Hash, contentOf(t, tt.uses, tt.secrets, tt.two...).Hash
			if (one == two) != tt.same || !SameScope(one, two) {
				t.Errorf("%s and %s", one, two)
			}
		})
	}
}

// TestManyKeys checks that the record of an object with a very large number of keys is bounded, and
// that its hash changes with every key, used or unused.
func TestManyKeys(t *testing.T) {
	many := map[string]string{}
	for i := range 50_000 {
		many[fmt.Sprint(i)] = ""
	}
	before := configMap(maps.Clone(many))
	many["7"] = "changed"
	after := configMap(many)
	for _, object := range []any{before, after} {
		if r, err := RecordOf(object); err != nil || len(r.sums) > maxSums {
			t.Errorf("the record has %d bytes of hashes, %v; want at most %d", len(r.sums), err, maxSums)
		}
	}
	for _, uses := range []string{"c/web", "c/web/7", "c/web/8"} {
		one, same, other := contentOf(t, uses, false, before), contentOf(t, uses, false, before.DeepCopy()), contentOf(t, uses, false, after)
		if one.Hash != same.Hash || one.Hash == other.Hash || one.Parts[0] == other.Parts[0] {
			t.Errorf("%s: %s, again %s, and after a change %s", uses, one.Hash, same.Hash, other.Hash)
		}
	}
}

func TestModified(t *testing.T) {
	c := configMap(nil)
	if got := contentOf(t, "c/web", false, c).Modified; !got.Equal(noon) {
		t.Errorf("modified at %s", got)
	}
	if got := contentOf(t, "c/web c/absent", false, c).Modified; !got.IsZero() {
		t.Errorf("an object that is not there may have been deleted at any time, and not at %s", got)
	}
	c.ManagedFields = nil
	if got := contentOf(t, "c/web", false, c).Modified; !got.IsZero() {
		t.Errorf("nothing is known, and not %s", got)
	}
}

func TestSameScope(t *testing.T) {
	c, both := contentOf(t, "c/web", false).Hash, contentOf(t, "c/web", true).Hash
	if SameScope(c, both) || SameScope("", c) || SameScope(c, "") || !SameScope(c, c) {
		t.Errorf("%s and %s", c, both)
	}
}

// TestNoContentIsKept checks that a record does not contain any values, and that the values of a
// Secret cannot be guessed without its UID.
func TestNoContentIsKept(t *testing.T) {
	r, err := RecordOf(secret("", "swordfish"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.sums, "swordfish") {
		t.Error("the record has the value")
	}
	asConfigMap, err := RecordOf(configMap(map[string]string{"a": "swordfish"}))
	if err != nil {
		t.Fatal(err)
	}
	if asConfigMap.SameContent(r) {
		t.Error("the hash of a value of a Secret can be computed by anyone who knows the value")
	}
}

func TestRecordOf(t *testing.T) {
	r, err := RecordOf(configMap(map[string]string{"a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	// Informers may transform an object that has already been transformed.
	if again, err := RecordOf(r); err != nil || again != r {
		t.Errorf("the record of a record is %+v: %v", again, err)
	}
	if meta := r.GetObjectMeta(); meta.GetNamespace() != "shop" || meta.GetName() != "web" || meta.GetResourceVersion() != "7" {
		t.Errorf("metadata %+v", meta)
	}
	if _, err := RecordOf(&corev1.Pod{}); err == nil {
		t.Error("there is a record of a pod")
	}
}

// TestWriters checks that the writer is the field manager that last wrote content, regardless of
// later writes to other fields. It also checks that two field managers that write alternately are
// both returned.
func TestWriters(t *testing.T) {
	entry := func(manager, fields string, after time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &metav1.Time{Time: noon.Add(after)}, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	record := func(value string, entries ...metav1.ManagedFieldsEntry) *Record {
		c := configMap(map[string]string{"a": value})
		c.ManagedFields = entries
		r, err := RecordOf(c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	data, labels := `{"f:data":{".":{},"f:a":{}}}`, `{"f:metadata":{"f:labels":{"f:data":{}}}}`
	first := record("1", entry("late", labels, time.Hour), entry("early", data, time.Minute), entry("helm", data, 2*time.Minute))
	second := record("2", entry("argocd", `{"f:binaryData":{}}`, 3*time.Minute))
	second.Follow(first)
	third := record("3", entry("argocd", data, 4*time.Minute))
	third.Follow(second)
	same := record("3", entry("late", data, 5*time.Minute))
	same.Follow(third)
	for _, tt := range []struct {
		r    *Record
		want string
	}{
		{first, "helm"}, {second, "argocd helm"}, {third, "argocd helm"}, {same, "argocd helm"},
		{record("1"), ""}, {record("1", entry("broken", "{", 0), metav1.ManagedFieldsEntry{Manager: "none", Time: &metav1.Time{Time: noon}}), ""},
		{record("1", entry("a\xffb", data, 0)), "a?b"},
	} {
		if got := strings.Join(tt.r.Writers(), " "); got != tt.want {
			t.Errorf("the writers are %q, want %q", got, tt.want)
		}
	}
}

// TestMissing checks that missing objects and missing keys are reported unless they are optional.
func TestMissing(t *testing.T) {
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprint("key-", i)] = ""
	}
	release := secret("", "1")
	release.Type, release.Data = releaseType, map[string][]byte{"release": nil}
	for _, tt := range []struct {
		uses    string
		secrets bool
		objects []any
		want    string
	}{
		{uses: "c/web"},
		{uses: "C/web", want: "ConfigMap web does not exist"},
		{uses: "C/web S/web", secrets: true, objects: []any{configMap(nil)}, want: "Secret web does not exist"},
		{uses: "C/web S/web", objects: []any{configMap(nil)}},
		{uses: "S/web/a!", secrets: true, objects: []any{secret("", "1")}},
		{uses: "S/web/a!,b!", secrets: true, objects: []any{secret("", "1")}, want: "Secret web has no key b"},
		{uses: "S/web/a!,b", secrets: true, objects: []any{secret("", "1")}},
		{uses: "S/web/*,b!", secrets: true, objects: []any{secret("", "1")}, want: "Secret web has no key b"},
		{uses: "C/web/a! C/web2", objects: []any{configMap(nil)}, want: "ConfigMap web has no key a"},
		// The keys of Helm releases and of objects with too many keys are not recorded, and count
		// as present.
		{uses: "C/web/a!", objects: []any{configMap(many)}},
		{uses: "S/web/a!", secrets: true, objects: []any{release}},
	} {
		if got := contentOf(t, tt.uses, tt.secrets, tt.objects...).Missing; got != tt.want {
			t.Errorf("%s, Secrets count: %v: got %q, want %q", tt.uses, tt.secrets, got, tt.want)
		}
	}
}
