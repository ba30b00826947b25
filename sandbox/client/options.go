// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options are the options for starting a sandbox.
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
	// Outlive keeps the sandbox running after this process has ended. Otherwise the sandbox stops and its
	// directory is removed together with this process, even if this process is killed.
	Outlive bool

	// Nodes is the minimum number of simulated nodes: 0 means 5, [NoNodes] means none.
	Nodes int
	// RealNodes is the number of additional nodes that run containers. They require root and `make
	// build-node`.
	RealNodes int
	// Delays overrides delays of simulated pods.
	Delays map[Delay]time.Duration
	// NoPodEvents disables the events that kubelets record about pods.
	NoPodEvents bool

	// Kubernetes is the release to run, such as 1.34; `make build-kubernetes` must have built it.
	Kubernetes string
	// EmulatedVersion limits the APIs and features to those of a release, such as 1.34.
	EmulatedVersion string
	// Audit logs every request to the API server in the file audit.log in the data directory.
	Audit bool
	// KeepHistory keeps every revision of every object.
	KeepHistory bool
	// Kubeconfig is a file for a copy of the administrator's kubeconfig.
	Kubeconfig string

	// Install is the initial content of the sandbox.
	Install Install

	// Args are additional flags of `sandbox up`, for a program that passes on its own arguments. They take
	// precedence over the fields above.
	Args []string
}

// NoNodes is the value of Options.Nodes for a sandbox without simulated nodes.
const NoNodes = -1

// Delay is the name of a delay of simulated pods; docs/pods-and-nodes.md explains them.
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

// args returns the flags of `sandbox up` for the options.
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
