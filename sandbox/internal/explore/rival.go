// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// rival is another client of the API server, which annotates objects as any client may.
type rival struct {
	recorder *recorder
	notes    *notes
	// annotated are the objects that were annotated while a write was on its way, touched the keys of
	// all that were annotated.
	annotated []Version
	touched   map[string]bool
}

// touchedAnnotation is what touch writes.
const touchedAnnotation = "sandbox.tidekeeper.dev/touched"

// touch writes an annotation to each object that the operator watches and did not make, as
// any other client may at any time.
func (r *rival) touch(ctx context.Context, roots map[string]bool) {
	for _, v := range r.recorder.objects() {
		if roots[v.key()] {
			r.annotate(ctx, &v)
		}
	}
}

// annotate writes an annotation as another client.
func (r *rival) annotate(ctx context.Context, v *Version) bool {
	t := Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, touchedAnnotation, time.Now().Format(time.RFC3339))
	if err := r.recorder.patch(ctx, t, "", patch); err != nil {
		return false
	}
	if r.touched == nil {
		r.touched = map[string]bool{}
	}
	r.touched[v.key()] = true
	r.notes.add("another client annotates %s", t)
	return true
}

// lost returns what another client wrote, and is not there any more though its object is.
func (r *rival) lost() []string {
	var lines []string
	for i := range r.annotated {
		if v := &r.annotated[i]; r.isLost(v) {
			lines = append(lines, v.key()+": what another client wrote to it is lost")
		}
	}
	return lines
}

// isLost reports whether an object is there, and an annotation is not that it had.
func (r *rival) isLost(v *Version) bool {
	now := r.recorder.find(Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()})
	return now != nil && now.GetUID() == v.Object.GetUID() && now.GetAnnotations()[touchedAnnotation] == ""
}

// forgive forgets what was lost in a step in which users may have removed it: a command replaces what
// it likes, and a patch may be about annotations. What was lost before is the operator's doing.
func (r *rival) forgive(lostBefore []string) {
	before := func(v *Version) bool {
		return slices.ContainsFunc(lostBefore, func(line string) bool { return strings.HasPrefix(line, v.key()+": ") })
	}
	r.annotated = slices.DeleteFunc(r.annotated, func(v Version) bool { return r.isLost(&v) && !before(&v) })
}

// mayRemoveAnnotations reports whether users may remove an annotation of another client in a step.
func (s *Step) mayRemoveAnnotations() bool {
	if s.Patch == nil {
		return s.Run != ""
	}
	merge, _ := s.Patch.Merge.(map[string]any)
	metadata, _ := merge["metadata"].(map[string]any)
	_, is := metadata["annotations"]
	return is
}
