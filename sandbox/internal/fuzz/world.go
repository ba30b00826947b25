// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// world is a sandbox in which the operator runs and the sample exists; between trials the
// cluster is quiet.
type world struct {
	*Fuzzer
	session *explore.Session
	// quiet is the time without a change after which the cluster counts as quiet, gap the longest
	// pause between two changes so far.
	quiet, gap time.Duration
	// edited is the state after the edits that were played last, and faults are the faults that can
	// be injected into the writes of the operator in response to these edits.
	edited state.State
	faults faults.Faults
	// objects is the number of objects with the sample; 0: not known yet.
	objects int
}

func (w *world) state() state.State { return w.session.State(leftOut) }

// scope returns the census of the objects and fields that edits are judged by.
func (w *world) scope() *results.Scope {
	s := w.session.Scope(leftOut, "the history of others", w.base.mask.Mask)
	for _, own := range w.Ignore {
		s.Besides = append(s.Besides, own+": --ignore says so")
	}
	s.Besides = append(s.Besides, "how often something was changed, when it was done, and claims for storage that are kept or have grown")
	return s
}

// sample returns the edited object with a content, without status, and in its namespace.
func (f *Fuzzer) sample(content map[string]any) *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: content}).DeepCopy()
	unstructured.RemoveNestedField(o.Object, "status")
	if f.target != nil {
		if !f.target.namespaced {
			o.SetNamespace("")
		} else if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
	}
	return o
}

// written returns the content as users wrote it, for comparisons; isNew is set if the object
// was just created.
func (w *world) written(content map[string]any, isNew bool) written {
	o := w.sample(content)
	return written{
		object: w.target.resource.GroupResource().String() + " " + o.GetNamespace() + "/" + o.GetName(),
		fields: state.Flatten(o.Object, func(path string) bool { return path == "metadata" }), isNew: isNew,
	}
}

// client returns a client for the kind of the sample.
func (w *world) client() dynamic.ResourceInterface {
	all := w.session.Client().Resource(w.target.resource)
	if !w.target.namespaced {
		return all
	}
	return all.Namespace(w.sample(w.Sample).GetNamespace())
}

// find returns the edited object, or nil if it does not exist.
func (w *world) find() *unstructured.Unstructured {
	o := w.sample(w.Sample)
	return w.session.Find(w.target.resource.GroupResource().String(), o.GetNamespace(), o.GetName())
}

// observed returns the status.observedGeneration of an object, 0 if there is none.
func observed(o *unstructured.Unstructured) int64 {
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return generation
}

// create creates the object.
func (w *world) create(ctx context.Context, content map[string]any) error {
	_, err := w.client().Create(ctx, w.sample(content), metav1.CreateOptions{})
	return err
}

// put replaces the content of the object, and returns the versions before and after. A dry run
// changes nothing. Conflicts are retried.
func (w *world) put(ctx context.Context, content map[string]any, dryRun bool) (before, after *unstructured.Unstructured, err error) {
	options := metav1.UpdateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for {
		if before, err = w.client().Get(ctx, w.sample(content).GetName(), metav1.GetOptions{}); err != nil {
			return nil, nil, err
		}
		after, err = w.client().Update(ctx, with(before, content), options)
		if !apierrors.IsConflict(err) {
			return before, after, err
		}
	}
}

// with returns an object with other content, except for the common fields.
func with(o *unstructured.Unstructured, content map[string]any) *unstructured.Unstructured {
	o = o.DeepCopy()
	maps.DeleteFunc(o.Object, func(field string, _ any) bool { return !slices.Contains(common, field) })
	for field, value := range (&unstructured.Unstructured{Object: content}).DeepCopy().Object {
		if !slices.Contains(common, field) {
			o.Object[field] = value
		}
	}
	return o
}

// sameContent reports whether two objects are equal except for the common fields.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(o *unstructured.Unstructured) map[string]any {
		fields := maps.Clone(o.Object)
		maps.DeleteFunc(fields, func(field string, _ any) bool { return slices.Contains(common, field) })
		return fields
	}
	return reflect.DeepEqual(content(a), content(b))
}

// remove deletes the object, without waiting until the object is gone.
func (w *world) remove(ctx context.Context) error {
	err := w.client().Delete(ctx, w.sample(w.Sample).GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// refused reports whether an error says that the API server rejects the content of the object.
// Conflicts, overload and missing objects are other errors.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := int(status.Status().Code); code {
	case http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusUnauthorized:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// begin starts a sandbox with the operator, and creates the sample.
func (f *Fuzzer) begin(ctx context.Context, name string) (*world, error) {
	s, err := f.Explorer.Begin(ctx, name)
	if err != nil {
		return nil, err
	}
	s.Know(f.base.habits)
	w := &world{Fuzzer: f, session: s, quiet: f.base.quiet}
	if err := w.fill(ctx); err != nil {
		s.End()
		return nil, err
	}
	return w, nil
}

// fill starts the operator and creates the sample. Differences from the state in the baseline
// are masked from now on, as they occur without an edit.
func (w *world) fill(ctx context.Context) error {
	w.session.Mark()
	if err := w.session.Start(); err != nil {
		return err
	}
	limit := w.base.took + w.Explorer.Patience
	if _, problem, err := w.settle(ctx, goal{learns: true}, limit); err != nil || problem != nil {
		return undisturbed("the operator was started", problem, err)
	}
	w.session.Act("the sample is created")
	if err := w.create(ctx, w.Sample); err != nil {
		return err
	}
	state, problem, err := w.settle(ctx, goal{state: w.base.state}, limit)
	switch {
	case err != nil:
		return err
	case problem != nil && problem.Oracle == judge.OtherState:
		w.excuse(w.base.mask.Compare(w.base.state, state), otherInNew)
	case problem != nil:
		return undisturbed("the sample was created", problem, nil)
	}
	w.objects = w.session.Objects()
	return nil
}

// Reasons, for users, why a difference does not count.
const (
	differsUnedited = "differs between two times that the sample was made"
	leftBehind      = "is left behind by the sample that was deleted"
	otherInNew      = "differs in a new sandbox with the sample"
	otherAgain      = "differs between two times that the same edit was made"
	anotherEachTime = "has another value each time that an edit is made and taken back"
)

// excuse masks differences from now on, in all sandboxes, and prints them.
func (w *world) excuse(differences []Difference, why string) {
	for _, masked := range w.base.mask.Learn(differences, why) {
		fmt.Fprintf(w.progress, "not judged from now on, as it %s: %s\n", why, masked)
	}
}

// undisturbed returns the error for a problem that occurs without an edit; nil if there is no
// problem.
func undisturbed(when string, problem *Problem, err error) error {
	if err != nil || problem == nil {
		return err
	}
	return fmt.Errorf("when %s, though nothing was edited: %s", when, problem.summary())
}

// renew restarts the operator and creates the sample again in the same sandbox, which is faster
// than another sandbox. It returns an error if leftovers of an edit remain.
func (w *world) renew(ctx context.Context) error {
	w.session.Kill()
	if err := w.remove(ctx); err != nil {
		return err
	}
	// The operator does not run, so that its finalizers must be removed here.
	_, err := w.client().Patch(ctx, w.sample(w.Sample).GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	w.session.Mark()
	over := time.After(w.base.took + w.Explorer.Patience)
	for {
		differences := w.base.mask.Compare(w.base.before, w.state())
		if len(differences) == 0 && w.session.Activity(w.quiet).Quiet >= w.quiet/2 {
			return w.fill(ctx)
		}
		select {
		case <-time.After(look):
		case <-over:
			return fmt.Errorf("what the edit has left behind does not go: %v", lines(differences))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
