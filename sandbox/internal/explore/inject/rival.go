// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

// Rival acts as another client of the API server, by annotating objects.
type Rival struct {
	Recorder *observe.Recorder
	Notes    *observe.Notes
	// annotated lists the objects that Rival annotated while the proxy delayed a write of the
	// operator. Touched is the set of keys of all objects that Rival annotated.
	annotated []observe.Version
	Touched   map[string]bool
}

// touch annotates the objects that users created, as any other client might do at any time. `roots`
// is the set of keys of these objects.
func (r *Rival) touch(ctx context.Context, roots map[string]bool) {
	for _, v := range r.Recorder.Objects() {
		if roots[v.Key()] {
			r.annotate(ctx, &v)
		}
	}
}

// annotate sets TouchedAnnotation on an object, and reports whether the write succeeded.
func (r *Rival) annotate(ctx context.Context, v *observe.Version) bool {
	t := workload.Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, observe.TouchedAnnotation, time.Now().Format(time.RFC3339))
	if err := r.Recorder.Patch(ctx, t, "", patch); err != nil {
		return false
	}
	if r.Touched == nil {
		r.Touched = map[string]bool{}
	}
	r.Touched[v.Key()] = true
	r.Notes.Add("another client annotates %s", t)
	return true
}

// Lost returns a line for each object in r.annotated that still exists but has lost its annotation
// TouchedAnnotation.
func (r *Rival) Lost() []string {
	var lines []string
	for i := range r.annotated {
		if v := &r.annotated[i]; r.isLost(v) {
			lines = append(lines, v.Key()+": what another client wrote to it is lost")
		}
	}
	return lines
}

// isLost reports whether an object still exists but has lost its annotation TouchedAnnotation.
func (r *Rival) isLost(v *observe.Version) bool {
	now := r.Recorder.Find(workload.Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()})
	return now != nil && now.GetUID() == v.Object.GetUID() && now.GetAnnotations()[observe.TouchedAnnotation] == ""
}

// Forgive ignores annotations that were lost in a step in which users may have removed them, by a
// command or by a patch of annotations. `lostBefore` is the result of Lost before this step.
// Forgive does not ignore the annotations in `lostBefore`, because the operator has removed them.
func (r *Rival) Forgive(lostBefore []string) {
	before := func(v *observe.Version) bool {
		return slices.ContainsFunc(lostBefore, func(line string) bool { return strings.HasPrefix(line, v.Key()+": ") })
	}
	r.annotated = slices.DeleteFunc(r.annotated, func(v observe.Version) bool { return r.isLost(&v) && !before(&v) })
}
