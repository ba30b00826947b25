// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Delays holds the delays between the steps in a pod's life, such as the start of its containers. A
// flag --pod-NAME sets a delay for all pods, and the pod annotation sandbox.tidekeeper.dev/NAME
// overrides the delay for a single pod.
type Delays struct {
	// Initialized is the delay from the scheduling of the pod until its init containers have
	// completed.
	Initialized time.Duration `json:"initialized-after"`
	// ContainersReady is the delay from the start of the containers until they are ready.
	ContainersReady time.Duration `json:"containers-ready-after"`
	// Started is the delay from the completion of the init containers until the main containers
	// start, which simulates the pull of their images.
	Started time.Duration `json:"started-after"`
	// Slow replaces ContainersReady for pods with the behavior Slow.
	Slow time.Duration `json:"slow-after"`
	// Ready is the delay from the readiness of all containers until the pod is ready.
	Ready time.Duration `json:"ready-after"`
	// Crash is the delay from the start of a crash-looping pod's containers until they fail.
	Crash time.Duration `json:"crash-after"`
	// Completed is the delay after which the containers of a Job's pod exit. It begins when the pod
	// is ready, or when its containers are ready if its readiness gates are false.
	Completed time.Duration `json:"completed-after"`
	// Terminated is the delay from the deletion of the pod until its containers have terminated.
	// The pod's grace period limits it.
	Terminated time.Duration `json:"terminated-after"`
}

// DefaultDelays returns the default delays. Most are short, but long enough for a test or a user to
// notice the steps.
func DefaultDelays() Delays {
	return Delays{
		Initialized:     100 * time.Millisecond,
		ContainersReady: 200 * time.Millisecond,
		Slow:            15 * time.Second,
		Crash:           200 * time.Millisecond,
		Completed:       time.Second,
		Terminated:      100 * time.Millisecond,
	}
}

// AddFlags registers a flag for each delay, with the current value in d as the default.
func (d *Delays) AddFlags(flags *pflag.FlagSet) {
	for _, f := range d.fields() {
		flags.DurationVar(f.value, "pod-"+f.name, *f.value, f.usage)
	}
}

// Args returns the command line flags that set these delays.
func (d *Delays) Args() []string {
	var args []string
	for _, f := range d.fields() {
		args = append(args, "--pod-"+f.name+"="+f.value.String())
	}
	return args
}

// WithoutDelays returns the pod annotations that set all delays to 0.
func WithoutDelays() map[string]string {
	annotations := map[string]string{}
	for _, f := range new(Delays).fields() {
		annotations[Prefix+f.name] = "0s"
	}
	return annotations
}

type delay struct {
	name  string
	value *time.Duration
	usage string
}

func (d *Delays) fields() []delay {
	return []delay{
		{"initialized-after", &d.Initialized, "how long pods take from being scheduled to having a sandbox and, one after the other, their init containers done"},
		{"started-after", &d.Started, "how long pods take from then to running, which is the time to pull their images"},
		{"containers-ready-after", &d.ContainersReady, "how long containers take from their start to being ready"},
		{"slow-after", &d.Slow, "how long containers take instead in pods that behave slowly"},
		{"ready-after", &d.Ready, "how long pods take from having ready containers to being ready"},
		{"crash-after", &d.Crash, "how long containers of crash-looping pods run"},
		{"completed-after", &d.Completed, "how long containers of Jobs run"},
		{"terminated-after", &d.Terminated, "how long deleted pods take to go"},
	}
}

// Validate returns an error if a delay is negative.
func (d *Delays) Validate() error {
	for _, f := range d.fields() {
		if *f.value < 0 {
			return fmt.Errorf("--pod-%s %s: a delay cannot be negative", f.name, *f.value)
		}
	}
	return nil
}
