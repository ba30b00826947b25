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

// Options holds the manager's own settings, and the controllers that it can run, each of which has
// further settings. Each setting has a flag; options_groups.go declares the flags, defaults and
// bounds of the settings in this struct.
//
// [NewOptions] returns the defaults. Options must not be copied, because its flags write into the
// original.
type Options struct {
	// Kubeconfig is the path of the kubeconfig file with the API server's address and credentials.
	// If it is empty, the files in KUBECONFIG are used, then ~/.kube/config, then the pod's service
	// account.
	Kubeconfig string

	// KubeAPIQPS is the client-side limit of requests per second. With 0, there is no limit, and
	// the API server's priority and fairness applies instead. Set a limit if the API server has no
	// priority and fairness.
	KubeAPIQPS float64

	// KubeAPIBurst is the maximum number of requests that the manager may send at once, faster than
	// KubeAPIQPS allows. It has no effect if KubeAPIQPS is 0.
	KubeAPIBurst int

	// NamespaceRequestsPerSecond is the number of requests per second that a namespace's objects
	// may cause. If a namespace exceeds it, only that namespace waits. Raise it together with the
	// restart budget if thousands of workloads in a namespace restart at the same time.
	NamespaceRequestsPerSecond float64

	// NamespaceRequestsBurst is the number of requests that a namespace's objects may cause at
	// once, after a time in which they caused fewer than NamespaceRequestsPerSecond.
	NamespaceRequestsBurst int

	// Controllers selects the controllers to run: "*" selects all controllers that are on by
	// default, "nodepool" selects the controller with that name, and "-nodepool" excludes it. The
	// first matching entry counts.
	Controllers []string

	// OptionalWatches lists the names of the optional watches to turn on, such as "configmaps".
	// Each optional watch needs additional rights.
	OptionalWatches []string

	// Namespaces limits the controllers of namespaced objects to the listed namespaces, so that
	// they need rights only there. All other controllers always handle the entire cluster. If
	// Namespaces is empty, there is no limit.
	Namespaces []string

	// ReconcileTimeout is the maximum duration of a reconcile. A reconcile that takes longer is
	// canceled, reported as an error and retried. Raise the timeout if the API server takes longer
	// to respond.
	ReconcileTimeout time.Duration

	// MetricsBindAddress is the host:port that serves /metrics. "0" turns metrics off.
	MetricsBindAddress string

	// MetricsSecure serves metrics over HTTPS, and only to clients that are authorized to GET
	// /metrics. If it is false, metrics are served over plain HTTP to every client.
	MetricsSecure bool

	// MetricsCertDir is the directory with the metrics endpoint's certificate and key. The files
	// are read again regularly, so that a renewed certificate is served without a restart. If it is
	// empty, a self-signed certificate is created at start.
	MetricsCertDir string

	// MetricsCertName is the name of the certificate's file in MetricsCertDir.
	MetricsCertName string

	// MetricsKeyName is the name of the key's file in MetricsCertDir.
	MetricsKeyName string

	// HealthProbeBindAddress is the host:port that serves /healthz and /readyz. "0" turns the
	// probes off.
	HealthProbeBindAddress string

	// PprofBindAddress is the host:port that serves Go profiles, without authentication: use a
	// loopback address. "0" turns profiles off.
	PprofBindAddress string

	// LeaderElect turns leader election on, so that several managers can run and only the leader is
	// active. It is off by default, so that a manager started by hand is active immediately. The
	// Deployment in config/manager, which has two replicas, turns it on.
	LeaderElect bool

	// LeaderElectNamespace is the lease's namespace. If it is empty, the pod's namespace is used;
	// outside of a cluster it must be set.
	LeaderElectNamespace string

	// LeaseDuration is the time that a standby waits after the leader's last renewal before it
	// takes over.
	LeaseDuration time.Duration

	// RenewDeadline is the time for which the leader retries a failed renewal of the lease before
	// it exits. It must be less than LeaseDuration.
	RenewDeadline time.Duration

	// RetryPeriod is the time between two attempts to acquire or renew the lease. A standby adds a
	// random time of up to 1.2 periods. After an orderly stop of the leader, it therefore takes
	// over within 2.2 periods, by default within two seconds.
	RetryPeriod time.Duration

	// GracefulShutdownTimeout is the time that running reconciles have to finish after the signal
	// to stop. Keep it below the pod's terminationGracePeriodSeconds.
	GracefulShutdownTimeout time.Duration

	// VerifyDecoding makes client-go decode every pod and node completely, in addition to the
	// cache, which decodes only the kept fields. Differences are counted and logged, and
	// client-go's values are used. Verification multiplies the CPU time, and takes more memory
	// while objects are listed. If pods are watched only in the namespaces in Namespaces, there is
	// nothing to verify, because client-go decodes all pods and nodes anyway.
	VerifyDecoding bool

	// LogLevel is the log's verbosity: "error", "info" (0, messages for administrators), "debug"
	// (1, decisions), "trace" (2, all other messages) or a number up to 9, at which client-go logs
	// each request.
	LogLevel string

	// LogFormat is "json" for one JSON object per line, or "text" for a human-readable format.
	LogFormat string

	controllers []controller.Definition
	groups      []*options.Group
}

// NewOptions returns the default options with this binary's controllers.
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

// Flags returns the flags of all options, in the groups that --help shows.
func (o *Options) Flags() flag.NamedFlagSets {
	var sets flag.NamedFlagSets
	for _, g := range o.groups {
		sets.FlagSet(g.Name).AddFlagSet(g.Flags)
	}
	return sets
}

// Validate returns nil if the manager can be started with these options. Its error has a line for
// each invalid flag, with the flag's name, its value and the allowed values. It checks nothing
// outside of the options.
func (o *Options) Validate() error {
	errs := make([]error, len(o.groups))
	for i, g := range o.groups {
		errs[i] = g.Validate()
	}
	return errors.Join(errs...)
}
