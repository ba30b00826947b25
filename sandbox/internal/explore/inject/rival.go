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

// Rival is another client of the API server, which annotates objects as any client may.
type Rival struct {
	Recorder *observe.Recorder
	Notes    *observe.Notes
	// annotated are the objects that were annotated while a write was on its way, touched the keys of
	// all that were annotated.
	annotated []observe.Version
	Touched   map[string]bool
}

// touch writes an annotation to each object that the operator watches and did not make, as
// any other client may at any time.
func (r *Rival) touch(ctx context.Context, roots map[string]bool) {
	for _, v := range r.Recorder.Objects() {
		if roots[v.Key()] {
			r.annotate(ctx, &v)
		}
	}
}

// annotate writes an annotation as another client.
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

// Lost returns the lost annotations of another client, where their objects still exist.
func (r *Rival) Lost() []string {
	var lines []string
	for i := range r.annotated {
		if v := &r.annotated[i]; r.isLost(v) {
			lines = append(lines, v.Key()+": what another client wrote to it is lost")
		}
	}
	return lines
}

// isLost reports whether an object is there, and an annotation is not that it had.
func (r *Rival) isLost(v *observe.Version) bool {
	now := r.Recorder.Find(workload.Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()})
	return now != nil && now.GetUID() == v.Object.GetUID() && now.GetAnnotations()[observe.TouchedAnnotation] == ""
}

// Forgive forgets what was lost in a step in which users may have removed it: a command replaces what
// it likes, and a patch may be about annotations. What was lost before is the operator's doing.
func (r *Rival) Forgive(lostBefore []string) {
	before := func(v *observe.Version) bool {
		return slices.ContainsFunc(lostBefore, func(line string) bool { return strings.HasPrefix(line, v.Key()+": ") })
	}
	r.annotated = slices.DeleteFunc(r.annotated, func(v observe.Version) bool { return r.isLost(&v) && !before(&v) })
}
