// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// minimal maps each kind to a small valid spec, from which the largest objects are made.
var minimal = map[string]map[string]any{
	"ScheduledRestart": {"targetRef": map[string]any{"kind": "Deployment", "name": attacked}},
}

// attacked is the name of the workload that the largest objects target.
const attacked = "attacked"

// largest is an object in which one field, or as many fields as possible, have an extreme value.
type largest struct {
	of     string
	object *unstructured.Unstructured
}

// maker makes the largest objects of a kind that the API server accepts from a tenant.
type maker struct {
	kind
	// minimal is a small valid spec of the kind.
	minimal map[string]any
	// accepts reports whether the API server would accept an object, without creating it.
	accepts func(*unstructured.Unstructured) bool
}

func (m *maker) new(spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": m.apiVersion, "kind": m.name}}
	o.SetNamespace(evil[0])
	o.SetName("largest")
	o.Object["spec"] = spec
	return o.DeepCopy()
}

// bases returns small objects: one with the minimal spec, and one for each value of each enum
// field, because other fields may be valid only in combination with that value.
func (m *maker) bases() (bases []*unstructured.Unstructured) {
	bases = append(bases, m.new(m.minimal))
	for _, f := range fieldsOf(m.spec, "spec") {
		if len(f.schema.Enum) == 0 {
			continue
		}
		for _, value := range extremes(f.schema, 0) {
			if o := m.first(bases[:1], f, value); o != nil {
				bases = append(bases, o)
			}
		}
	}
	return bases
}

// first sets field f of each base to each of the alternatives, and returns the first object that is
// accepted, or nil.
func (m *maker) first(bases []*unstructured.Unstructured, f field, alternatives []any) *unstructured.Unstructured {
	for _, value := range alternatives {
		for _, base := range bases {
			o := base.DeepCopy()
			if err := unstructured.SetNestedField(o.Object, value, f.path...); err == nil && m.accepts(o) {
				return o
			}
		}
	}
	return nil
}

// make returns an object for each extreme value of each field, and objects with as many fields at
// an extreme as are valid together. It also returns the extremes that are never accepted.
func (m *maker) make() (all []largest, lacking []string) {
	bases := m.bases()
	for _, f := range fieldsOf(m.spec, "spec") {
		for e, alternatives := range extremes(f.schema, 0) {
			if o := m.first(bases, f, alternatives); o != nil {
				all = append(all, largest{fmt.Sprintf("%s, extreme %d", f, e), o})
			} else {
				lacking = append(lacking, fmt.Sprintf("%s, extreme %d", f, e))
			}
		}
	}
	for i, base := range bases {
		for _, f := range fieldsOf(m.spec, "spec") {
			if _, begun, _ := unstructured.NestedFieldNoCopy(base.Object, f.path...); begun && len(f.schema.Enum) > 0 {
				continue // The base already has a value of this enum.
			}
			if o := m.first([]*unstructured.Unstructured{base}, f, extremes(f.schema, 0)[0]); o != nil {
				base = o
			}
		}
		all = append(all, largest{fmt.Sprint("all that go together, ", i), base})
	}
	return all, lacking
}

// longestMetadata maps each metadata field that users can set to a function that fills it with
// about the given number of bytes.
var longestMetadata = map[string]func(o *unstructured.Unstructured, bytes int){
	"name":   func(o *unstructured.Unstructured, _ int) { o.SetName(strings.Repeat("x", 253)) },
	"labels": func(o *unstructured.Unstructured, bytes int) { o.SetLabels(manyKeys(bytes)) },
	"annotations": func(o *unstructured.Unstructured, _ int) {
		o.SetAnnotations(map[string]string{"example.com/x": strings.Repeat("x", 256<<10-len("example.com/x"))})
	},
	"finalizers": func(o *unstructured.Unstructured, bytes int) {
		o.SetFinalizers(slices.Collect(maps.Keys(manyKeys(bytes))))
	},
	"ownerReferences": func(o *unstructured.Unstructured, bytes int) {
		var owners []metav1.OwnerReference
		for n := range bytes / 1000 {
			owners = append(owners, metav1.OwnerReference{
				APIVersion: "example.com/v1", Kind: "X" + strings.Repeat("x", 400), Name: strings.Repeat("x", 400), UID: types.UID(fmt.Sprint("nobody-", n)),
			})
		}
		o.SetOwnerReferences(owners)
	},
	"managedFields": func(o *unstructured.Unstructured, bytes int) {
		var all []metav1.ManagedFieldsEntry
		for n := range bytes / 500 {
			all = append(all, metav1.ManagedFieldsEntry{
				Manager: fill(fmt.Sprint("x", n), "x", 128), Operation: metav1.ManagedFieldsOperationApply, APIVersion: o.GetAPIVersion(), Time: new(metav1.Now()),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:targetRef":{"f:kind":{},"f:name":{}}}}`),
			})
		}
		o.SetManagedFields(all)
	},
}

// ownMetadata lists the metadata fields that users cannot set, or that another field's test covers.
var ownMetadata = []string{
	"generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// manyKeys returns keys and values with about the given total number of bytes. The values are valid
// label values.
func manyKeys(bytes int) map[string]string {
	all := map[string]string{}
	for n := range bytes / 400 {
		all[fmt.Sprintf("%s/x%05d%s", strings.Repeat("x", 253), n, strings.Repeat("x", 57))] = strings.Repeat("x", 63)
	}
	return all
}

// TestEachFieldOfTheMetadataHasATrick checks that a trick fills each metadata field, unless users
// cannot set it.
func TestEachFieldOfTheMetadataHasATrick(t *testing.T) {
	meta := reflect.TypeFor[metav1.ObjectMeta]()
	for i := range meta.NumField() {
		name, _, _ := strings.Cut(meta.Field(i).Tag.Get("json"), ",")
		if longestMetadata[name] == nil && !slices.Contains(ownMetadata, name) {
			t.Errorf("no trick fills metadata.%s", name)
		}
	}
}

// accepts returns a function that reports, by means of a dry run, whether the tenant may create an
// object.
func (s *stage) accepts(t *testing.T) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		err := s.mallory.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			t.Fatalf("%s, as large as it may be: %v", o.GetKind(), err)
		}
		return err == nil
	}
}

// largestObjects returns the largest objects of each kind, and fails the test for each field
// without such an object. They are found once, by many dry runs with large objects.
func (s *stage) largestObjects(t *testing.T) (all []largest) {
	t.Helper()
	if s.largest == nil {
		s.largest = s.findLargest(t)
	}
	for _, l := range s.largest {
		all = append(all, largest{l.of, l.object.DeepCopy()})
	}
	return all
}

func (s *stage) findLargest(t *testing.T) (all []largest) {
	t.Helper()
	for _, k := range namespacedKinds(t) {
		if minimal[k.name] == nil {
			t.Fatalf("no small %s is known to begin with", k.name)
		}
		m := &maker{k, minimal[k.name], s.accepts(t)}
		of, lacking := m.make()
		for _, f := range lacking {
			t.Errorf("no trick fills %s of %s: the API server has accepted no value for it", f, k.name)
		}
		for _, name := range slices.Sorted(maps.Keys(longestMetadata)) {
			of = append(of, largest{"metadata." + name, m.new(m.minimal)})
		}
		all = append(all, of...)
	}
	t.Logf("%d objects", len(all))
	return all
}

// swell writes an object. If the object stands for a metadata field, swell fills the field with as
// many bytes as the API server stores.
func (s *stage) swell(t *testing.T, l largest, write func(*unstructured.Unstructured) error) {
	t.Helper()
	name, isMetadata := strings.CutPrefix(l.of, "metadata.")
	var err error
	for bytes := cmp.Or(s.swollen[name], 1_500_000); bytes > 100_000; bytes = bytes * 9 / 10 {
		o := l.object.DeepCopy()
		if isMetadata {
			longestMetadata[name](o, bytes)
		}
		if err = write(o); err == nil {
			s.swollen[name] = bytes
			return
		}
		if !isMetadata {
			break
		}
	}
	t.Errorf("%s: %v", l.of, err)
}

// largestFields creates the largest objects of each kind, one for each field, and requests
// immediate restarts.
func (s *stage) largestFields(t *testing.T) {
	for _, namespace := range evil {
		s.makes(t, workload(namespace, attacked, 1, nil))
	}
	for i, l := range s.largestObjects(t) {
		l.object.SetNamespace(evil[i%len(evil)])
		l.object.SetName(fmt.Sprint("largest-", i))
		l.object.SetAnnotations(map[string]string{tidekeeperv1.RestartNowAnnotation: now()})
		s.swell(t, l, func(o *unstructured.Unstructured) error {
			if err := s.mallory.Create(t.Context(), o); err != nil {
				return err
			}
			t.Cleanup(func() { s.removes(t, o) })
			return nil
		})
	}
}

// largestDuring makes objects as large as those of [stage.largestFields] while their endless
// restarts are in progress.
func (s *stage) largestDuring(t *testing.T) {
	all := s.largestObjects(t)
	var restarts []*tidekeeperv1.ScheduledRestart
	for i := range all {
		namespace, name := evil[i%len(evil)], fmt.Sprint("growing-", i)
		r := ask(restart(namespace, name, endless), time.Now().UTC().Format(time.RFC3339))
		s.makes(t, neverEnding(namespace, name, int32(23000+i)), r)
		restarts = append(restarts, r)
	}
	for i, l := range all {
		underway(t, restarts[i])
		key := client.ObjectKeyFromObject(restarts[i])
		s.swell(t, l, func(o *unstructured.Unstructured) (err error) {
			framework.Eventually(t, "no one else has written it meanwhile", func() error {
				latest := o.DeepCopy()
				if err := s.mallory.Get(t.Context(), key, latest); err != nil {
					return err
				}
				grown := o.DeepCopy()
				grown.SetNamespace(key.Namespace)
				grown.SetName(key.Name)
				grown.SetUID(latest.GetUID())
				grown.SetResourceVersion(latest.GetResourceVersion())
				grown.Object["status"] = latest.Object["status"]
				if err = s.mallory.Update(t.Context(), grown); apierrors.IsConflict(err) {
					return err
				}
				return nil
			})
			return err
		})
	}
}
