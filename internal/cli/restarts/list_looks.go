// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"context"
	"io"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// lookAge is the time for which `kubectl tide restarts -w` reuses the Freezes and workloads that it
// read in a namespace. Without reuse, each change of a ScheduledRestart would cause new requests.
const lookAge = 10 * time.Second

// look holds the Freezes and workloads of a namespace, and the time at which they were read.
type look struct {
	at    time.Time
	world *world
}

// namespacesOf returns the namespaces of the given ScheduledRestarts, without duplicates.
func namespacesOf(items []tidekeeperv1.ScheduledRestart) []string {
	var namespaces []string
	for i := range items {
		if namespace := items[i].Namespace; !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// lookAround reads the Freezes and workloads that affect the ScheduledRestarts, and stores them in
// o.looks. It omits objects that the user is not allowed to read.
func (o *listOptions) lookAround(ctx context.Context, c client.Client, items []tidekeeperv1.ScheduledRestart) error {
	w := newWorld(o.Env, c, o.namespace)
	w.alone = true
	for i := range items {
		// Skip workload kinds that this version does not support, so that the rest of the list is
		// still printed.
		if _, err := workload.Get(items[i].Spec.TargetRef); err == nil || decision.Evicts(&items[i]) {
			w.restarts = append(w.restarts, &items[i])
		}
	}
	if err := w.readFreezes(ctx); err != nil {
		return err
	}
	if err := w.readTargetsOfAll(ctx); err != nil {
		return err
	}
	if o.looks == nil {
		o.looks = map[string]look{}
	}
	for _, namespace := range namespacesOf(items) {
		o.looks[namespace] = look{o.Now(), w}
	}
	return nil
}

// lookAgain refreshes the Freezes and workloads of a namespace in o.looks if they are older than
// lookAge. If reading fails, it keeps the previous Freezes and workloads.
func (o *listOptions) lookAgain(ctx context.Context, c client.Client, namespace string) {
	if last, known := o.looks[namespace]; known && o.Now().Sub(last.at) < lookAge {
		return
	}
	quiet, again := *o.Env, *o
	quiet.Console.ErrOut = io.Discard
	again.Env, again.namespace = &quiet, namespace
	list, err := listRestarts(ctx, c, client.InNamespace(namespace))
	if err != nil || again.lookAround(ctx, c, list.Items) != nil {
		return
	}
	o.looks = again.looks
}

// restart returns the summary of r that the list shows, with the effects of Freezes and of the
// workload's state.
func (o *listOptions) restart(r *tidekeeperv1.ScheduledRestart, now time.Time) view.Restart {
	shown := view.RestartOf(r, o.shared)
	if around := o.looks[r.Namespace].world; around != nil {
		shown.AddFreezes(r, around.freezes[r.Namespace], now)
		if target, known := around.targets[forecast.KeyOf(r.Namespace, r.Spec.TargetRef)]; known {
			shown.AddTarget(r, target, now)
		}
	}
	return shown
}
