// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options say how a sandbox is started.
type Options struct {
	// Binary is the path of the sandbox program. The default is $SANDBOX_BIN, then "sandbox" in the
	// PATH, then a program that is built into the user's cache: from the checkout that
	// $SANDBOX_SOURCE names, or of the version of this module. The first build takes minutes;
	// SANDBOX_BUILD=no forbids it.
	Binary string
	// Dir is the data directory. The default is a new temporary directory, which
	// Down removes.
	Dir string
	// Fresh removes the state of earlier runs from Dir.
	Fresh bool
	// Outlive keeps the sandbox running when this process ends. Otherwise the sandbox stops then,
	// and its directory is removed, even if this process is killed.
	Outlive bool

	// Nodes is how many simulated nodes there are at least: 0 means 5, [NoNodes] none.
	Nodes int
	// RealNodes is how many nodes run containers besides; that needs root and `make build-node`.
	RealNodes int
	// Delays are how long it takes until something happens to a simulated pod, where that is not
	// as usual.
	Delays map[Delay]time.Duration
	// NoPodEvents leaves out the events of kubelets about pods.
	NoPodEvents bool

	// Kubernetes is a release to run, such as 1.34, which `make build-kubernetes` has built.
	Kubernetes string
	// EmulatedVersion is a release, such as 1.34, whose APIs and features there are only.
	EmulatedVersion string
	// Audit logs each request to the API server in the file audit.log of the data directory.
	Audit bool
	// KeepHistory keeps each revision of each object.
	KeepHistory bool
	// Kubeconfig is a file that the administrator's kubeconfig is also written to.
	Kubeconfig string

	// Install is the content of the sandbox when it is ready.
	Install Install

	// Args are flags of `sandbox up` as on its command line, for a program that passes on its own
	// arguments. They take precedence over the fields above.
	Args []string
}

// NoNodes is for [Options]: there are no simulated nodes.
const NoNodes = -1

// Delay is a delay of simulated pods, which docs/pods-and-nodes.md explains.
type Delay string

// The delays of simulated pods.
const (
	InitializedAfter     Delay = "initialized-after"
	StartedAfter         Delay = "started-after"
	ContainersReadyAfter Delay = "containers-ready-after"
	SlowAfter            Delay = "slow-after"
	ReadyAfter           Delay = "ready-after"
	CrashAfter           Delay = "crash-after"
	CompletedAfter       Delay = "completed-after"
	TerminatedAfter      Delay = "terminated-after"
)

// args are the flags of `sandbox up` that the options stand for.
func (o Options) args() []string {
	var args []string
	if o.Nodes != 0 {
		args = append(args, fmt.Sprintf("--nodes=%d", max(o.Nodes, 0)))
	}
	if o.RealNodes != 0 {
		args = append(args, fmt.Sprintf("--real-nodes=%d", o.RealNodes))
	}
	for _, delay := range slices.Sorted(maps.Keys(o.Delays)) {
		args = append(args, fmt.Sprintf("--pod-%s=%s", delay, o.Delays[delay]))
	}
	for _, flag := range []struct {
		set  bool
		text string
	}{
		{o.Fresh, "--fresh"},
		{o.NoPodEvents, "--pod-events=false"},
		{o.Audit, "--audit"},
		{o.KeepHistory, "--keep-history"},
		{o.Kubernetes != "", "--kubernetes=" + o.Kubernetes},
		{o.EmulatedVersion != "", "--emulated-version=" + o.EmulatedVersion},
		{o.Kubeconfig != "", "--kubeconfig=" + o.Kubeconfig},
	} {
		if flag.set {
			args = append(args, flag.text)
		}
	}
	return append(args, o.Args...)
}
