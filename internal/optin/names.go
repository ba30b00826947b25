// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package optin

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// namesFor returns the possible names of a workload's ScheduledRestart in order of preference: the
// workload's name, the name with the kind appended, and a name with a hash. The opt-in uses the
// first name that is free. The second name is used if the first is taken, for example by a workload
// of another kind. The third name is used if the second is taken or too long; no other client uses
// it by chance.
func namesFor(kind *workload.Kind, name string) []string {
	suffix := "-" + strings.ToLower(kind.Kind)
	names := []string{name}
	if len(name)+len(suffix) <= validation.DNS1123SubdomainMaxLength {
		names = append(names, name+suffix)
	}
	hash := sha256.Sum256([]byte(kind.Kind + "/" + name))
	suffix = "-" + hex.EncodeToString(hash[:5]) + suffix
	// A label in a DNS name must not be empty or end with a hyphen, so trim the end of the
	// shortened name.
	cut := name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return append(names, strings.TrimRight(cut, "-.")+suffix)
}

// workloadNames returns the names of the workloads of the given kind whose ScheduledRestart may
// have the given name. It does not cover the hashed name of [namesFor], because a hash cannot be
// reversed.
func workloadNames(kind *workload.Kind, name string) []string {
	names := []string{name}
	if base, ok := strings.CutSuffix(name, "-"+strings.ToLower(kind.Kind)); ok && base != "" {
		names = append(names, base)
	}
	return names
}

// place is the current or future name of a workload's ScheduledRestart, together with the object
// that currently has this name.
type place struct {
	name     string
	existing *tidekeeperv1.ScheduledRestart
	origin   origin
	// second is a duplicate ScheduledRestart that the opt-in created for this workload because of a
	// stale cache. It must be deleted.
	second *tidekeeperv1.ScheduledRestart
}

// find returns the name to use for a workload's ScheduledRestart. An existing ScheduledRestart
// keeps its name, even if a preferred name becomes free. If the opt-in has not created a
// ScheduledRestart yet, the workload adopts an orphaned ScheduledRestart, or waits until a
// ScheduledRestart that is being deleted has freed its name. If another client has created a
// ScheduledRestart for the same workload, the opt-in must not create a second.
func find(kind *workload.Kind, object metav1.Object, existing []*tidekeeperv1.ScheduledRestart) place {
	var mine, waits, inTheWay, free *place
	var last place
	for i, name := range namesFor(kind, object.GetName()) {
		p := place{name: name}
		if i < len(existing) {
			p.existing = existing[i]
		}
		p.origin = originOf(kind, object, p.existing)
		switch {
		case p.origin == ours && mine == nil:
			mine = &p
		case p.origin == ours && p.existing.CreationTimestamp.Before(&mine.existing.CreationTimestamp):
			p.second = mine.existing
			mine = &p
		case p.origin == ours:
			mine.second = p.existing
		case (p.origin == orphan || p.origin == dying) && waits == nil:
			waits = &p
		case p.origin == foreign && p.existing.Spec.TargetRef.Equal(kind.Ref(object.GetName())) && inTheWay == nil:
			inTheWay = &p
		case p.origin == absent && free == nil:
			free = &p
		}
		last = p
	}
	for _, p := range []*place{mine, waits, inTheWay, free} {
		if p != nil {
			return *p
		}
	}
	return last
}
