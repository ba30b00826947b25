// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"time"

	"k8s.io/component-base/cli/flag"

	"tidekeeper.dev/tidekeeper/internal/controller"
	"tidekeeper.dev/tidekeeper/internal/options"
)

// Options are the settings of the manager itself, and the controllers that it can run, each of
// which has settings of its own. Each setting has a flag; options_groups.go declares the flags,
// defaults and bounds of the settings in this struct.
//
// [NewOptions] returns the defaults. The flags write into the Options that they were created
// from, so Options must not be copied.
type Options struct {
	// Kubeconfig is the kubeconfig file with the address and credentials of the API server.
	// Empty means the file in KUBECONFIG, then ~/.kube/config, then the pod's service account.
	Kubeconfig string

	// KubeAPIQPS is the client's limit of requests per second. 0 means no limit, which leaves
	// the limit to the API server's priority and fairness. Set it for an API server that has
	// priority and fairness turned off.
	KubeAPIQPS float64

	// KubeAPIBurst is the number of requests that may be sent at once above KubeAPIQPS. It has
	// no effect if KubeAPIQPS is 0.
	KubeAPIBurst int

	// NamespaceRequestsPerSecond is the number of requests to the API server that the objects
	// of a namespace may cause per second. If a namespace exceeds it, only that namespace
	// waits. Raise it together with the restart budget if thousands of workloads in a namespace
	// are restarted at once.
	NamespaceRequestsPerSecond float64

	// NamespaceRequestsBurst is the number of requests that a namespace may cause at once after
	// it has caused fewer than its share.
	NamespaceRequestsBurst int

	// Controllers selects the controllers to run: "*" selects all that are on by default,
	// "nodepool" selects that controller, and "-nodepool" excludes it. The first entry that
	// matches a controller counts.
	Controllers []string

	// OptionalWatches are the names of the optional watches of the controllers to turn on, such
	// as "configmaps". Each needs rights of its own.
	OptionalWatches []string

	// Namespaces limits the controllers of namespaced objects to these namespaces, so that they
	// need rights only there. The other controllers always handle the whole cluster. Empty
	// means all namespaces.
	Namespaces []string

	// ReconcileTimeout is the maximum time that a controller may work on an object. After that,
	// the attempt is cancelled, reported as an error and retried. Raise it if the API server
	// takes longer to answer.
	ReconcileTimeout time.Duration

	// MetricsBindAddress is the host:port that serves /metrics; "0" turns metrics off.
	MetricsBindAddress string

	// MetricsSecure serves metrics over HTTPS, only to clients authorized to GET
	// /metrics. Otherwise they are served over plain HTTP to every client.
	MetricsSecure bool

	// MetricsCertDir is the directory with the certificate and key of the metrics endpoint. The
	// files are read again when they change. Empty means a self-signed certificate created at
	// start.
	MetricsCertDir string

	// MetricsCertName is the file name of the certificate in MetricsCertDir.
	MetricsCertName string

	// MetricsKeyName is the file name of the key in MetricsCertDir.
	MetricsKeyName string

	// HealthProbeBindAddress is the host:port that serves /healthz and /readyz; "0" turns them
	// off.
	HealthProbeBindAddress string

	// PprofBindAddress is the host:port that serves Go profiles without authentication: bind it
	// to a loopback address. "0" turns profiles off.
	PprofBindAddress string

	// LeaderElect lets several managers run, of which only the leader is active. It is off by
	// default, so that a manager started by hand is active at once; the Deployment in
	// config/manager, which has two replicas, sets it.
	LeaderElect bool

	// LeaderElectNamespace is the namespace of the lease. Empty means the namespace of
	// the pod; outside a cluster it must be set.
	LeaderElectNamespace string

	// LeaseDuration is the time that a standby waits after the leader's last renewal before it
	// takes over.
	LeaseDuration time.Duration

	// RenewDeadline is the time for which the leader tries to renew the lease before it gives
	// up and exits. It must be less than LeaseDuration.
	RenewDeadline time.Duration

	// RetryPeriod is the time between two attempts to acquire or renew the lease. A standby
	// adds a random time of up to 1.2 such periods, so that it takes over within 2.2 periods
	// after the leader has stopped in order: by default within two seconds.
	RetryPeriod time.Duration

	// GracefulShutdownTimeout is the time that running reconciles may take to finish after a
	// signal to stop. Keep it below the pod's terminationGracePeriodSeconds.
	GracefulShutdownTimeout time.Duration

	// VerifyDecoding makes client-go decode every pod and node, too, from which the cache decodes
	// only the fields that it keeps. A difference is counted and logged, and client-go's values are
	// used. It takes several times the CPU, and more memory while objects are listed. With
	// Namespaces, client-go decodes all pods and nodes in any case.
	VerifyDecoding bool

	// LogLevel is the verbosity of the log: "error", "info" (0: messages that administrators
	// must see), "debug" (1: decisions), "trace" (2: all others) or a number up to 9, at which
	// client-go logs each request.
	LogLevel string

	// LogFormat is "json", one object per line, or "text", for people.
	LogFormat string

	controllers []controller.Definition
	groups      []*options.Group
}

// NewOptions returns all options with their defaults, and the controllers of this binary.
func NewOptions() *Options {
	o := &Options{controllers: controllers()}
	o.groups = []*options.Group{o.clusterGroup(), o.controllersGroup()}
	for _, c := range o.controllers {
		if c.Options != nil {
			o.groups = append(o.groups, c.Options)
		}
	}
	o.groups = append(o.groups, o.electionGroup(), o.metricsGroup(), o.processGroup())
	return o
}

// Definitions returns the controllers that the manager can run.
func (o *Options) Definitions() []controller.Definition { return o.controllers }

// Flags returns one flag for each option, in the groups that --help shows.
func (o *Options) Flags() flag.NamedFlagSets {
	var sets flag.NamedFlagSets
	for _, g := range o.groups {
		sets.FlagSet(g.Name).AddFlagSet(g.Flags)
	}
	return sets
}

// Validate returns nil if the manager can be started with these options, else an error with a
// line for each invalid flag: its name, its value and the allowed values. It depends on nothing
// but the options.
func (o *Options) Validate() error {
	errs := make([]error, len(o.groups))
	for i, g := range o.groups {
		errs[i] = g.Validate()
	}
	return errors.Join(errs...)
}
