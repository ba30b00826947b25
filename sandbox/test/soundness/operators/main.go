// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/tools/cache"
)

// reconcilers maps the names of pairs to reconcile functions, which create the objects that a
// Thing's spec requires.
var reconcilers = map[string]func(context.Context, *operator, *Thing) error{
	"done-first":       doneFirst,
	"generated-names":  generatedNames,
	"roles":            roles,
	"no-expectations":  noExpectations,
	"overwrites":       overwrites,
	"finalizer-memory": finalizerMemory,
	"ignores-error":    ignoresError,
	"owner-later":      ownerLater,
	"restless":         restless,
	"impatient":        impatient,
	"asks-fast":        asksFast,
	"gives-up":         givesUp,
	"swallows":         swallows,
	"nil-object":       nilObject,
	"exits":            exits,

	"observed-too-new": observedTooNew,
	"by-name":          byName,
	"slow-delete":      slowDelete,
	"system-namespace": readyFirst(func(ctx context.Context, o *operator, t *Thing) error { return o.keep(ctx, child(t, t.Name, data(t))) }),
	"api-service":      doneFirst,
	"endpoint-slice":   readyFirst(makeSlice),
	"other-kind":       readyFirst(makePart),
	"pod-condition":    readyFirst(fence),
	"node-condition":   readyFirst(markNode),
	"observed-behind":  observedBehind,
	"ready-early":      readyEarly,
	"either-end":       eitherEnd,
	"second-run":       secondRun,
	"heartbeat":        heartbeat,
	"toggles":          toggles,
	"annotations":      copiesAnnotations,
	"deletes-always":   deletesAlways,
	"takes-pod":        takesPod,
	"replaced":         overwrites,

	"empty-list": emptyList,
	"divides":    divides,
	"stuck":      stuck,
	"leftover":   leftover,
	"spins":      spins,
	"sticky":     sticky,
	"hasty":      hasty,

	"writes-back": writesBack,

	"rigid":     rigid,
	"label":     label,
	"silent":    silent,
	"recreates": recreates,
	"fatal":     fatal,
	"partial":   partial,
}

// programs maps the names of pairs to operators that receive events without the shared reconcile
// loop.
var programs = map[string]func(context.Context, *operator, cache.SharedIndexInformer, cache.SharedIndexInformer) error{
	"tombstones":        tombstones,
	"missed-deletions":  missedDeletions,
	"deleted-meanwhile": deletedMeanwhile,
	"stale-sweep":       staleSweep,
	"watch-ends":        watchEnds,
	"watch-skips":       watchSkips,
	"two-leaders":       twoLeaders,
	"migrates-once":     migratesOnce,
	"fixed-port":        fixedPort,
	"too-many-pods":     tooManyPods,
	"surges":            surges,
	"wanted-claims":     wantedClaims,
}

func main() {
	mistake := flag.String("mistake", "", "the pair whose mistake to make")
	runs := flag.String("runs", "", "a file with a line for each run in which the operator has been started")
	right := flag.String("right", "", "the pair whose mistake not to make")
	flag.Parse()
	o := &operator{runs: *runs, wrong: *mistake != "", name: *mistake + *right}
	fmt.Fprintln(os.Stderr, "operator:", o.run(context.Background()))
	os.Exit(1)
}
