// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
	"tidekeeper.dev/tidekeeper/internal/options"
)

// Names of the flags that other commands share with the manager or that messages mention. A flag
// that kube-controller-manager also has gets the same name.
const (
	FlagKubeconfig           = "kubeconfig"
	FlagControllers          = "controllers"
	FlagOptionalWatches      = "optional-watches"
	FlagNamespaces           = "namespaces"
	FlagLeaderElectNamespace = "leader-elect-resource-namespace"

	flagLeaderElect    = "leader-elect"
	flagLeaseDuration  = "leader-elect-lease-duration"
	flagRenewDeadline  = "leader-elect-renew-deadline"
	flagRetryPeriod    = "leader-elect-retry-period"
	flagMetricsCertDir = "metrics-cert-dir"
)

func (o *Options) clusterGroup() *options.Group {
	g := options.NewGroup("cluster")
	g.String(&o.Kubeconfig, FlagKubeconfig, "", nil,
		"kubeconfig `file` for the connection to the API server (default: $KUBECONFIG, then ~/.kube/config, then the pod's service account)")
	g.Float64(&o.KubeAPIQPS, "kube-api-qps", 0, options.Between[float64](0, 100_000),
		"maximum requests per second to the API server; 0 leaves the limit to the API server's priority and fairness")
	g.Int(&o.KubeAPIBurst, "kube-api-burst", 100, options.Between(1, 100_000),
		"maximum burst of requests to the API server above --kube-api-qps, if --kube-api-qps is set")
	g.Float64(&o.NamespaceRequestsPerSecond, "namespace-requests-per-second", 100, options.Between[float64](1, 100_000),
		"maximum requests per second to the API server caused by the objects of one namespace; if exceeded, only that namespace waits")
	g.Int(&o.NamespaceRequestsBurst, "namespace-requests-burst", 5000, options.Between(100, 10_000_000),
		"maximum burst of requests to the API server that one namespace may cause above --namespace-requests-per-second")
	return g
}

func (o *Options) controllersGroup() *options.Group {
	g := options.NewGroup("controllers")
	g.Strings(&o.Controllers, FlagControllers, []string{"*"}, nil,
		fmt.Sprintf("controllers to run: '*' means all that are on by default, 'foo' adds the controller foo, '-foo' removes it. The controllers are: %s",
			strings.Join(namesOf(o.controllers), ", ")))
	g.Check(func() error {
		_, err := o.selection()
		return err
	})
	g.Strings(&o.OptionalWatches, FlagOptionalWatches, nil, nil,
		fmt.Sprintf("kinds that controllers watch only if they are named here, as each needs rights of its own: %s",
			strings.Join(optionalWatches(o.controllers), ", ")))
	g.Strings(&o.Namespaces, FlagNamespaces, nil, checkNamespaces,
		fmt.Sprintf("namespaces that %s are limited to (default: all). The other controllers always handle the whole cluster",
			strings.Join(namespacedNames(o.controllers), ", ")))
	g.Duration(&o.ReconcileTimeout, "reconcile-timeout", time.Minute, options.Between(5*time.Second, 4*time.Minute),
		"maximum time that a controller may work on an object before it gives up and retries later")
	return g
}

func (o *Options) electionGroup() *options.Group {
	g := options.NewGroup("leader election")
	g.Bool(&o.LeaderElect, flagLeaderElect, false,
		"elect a leader among several managers; only the leader is active")
	g.String(&o.LeaderElectNamespace, FlagLeaderElectNamespace, "", nil,
		"`namespace` of the lease "+lease.Name+" (default: the namespace of the pod)")
	g.Duration(&o.LeaseDuration, flagLeaseDuration, 15*time.Second, options.Between(time.Second, time.Hour),
		"time that a standby waits after the leader's last renewal before it takes over")
	g.Duration(&o.RenewDeadline, flagRenewDeadline, 10*time.Second, options.Between(500*time.Millisecond, time.Hour),
		"time for which the leader tries to renew the lease before it gives up and exits")
	g.Duration(&o.RetryPeriod, flagRetryPeriod, 750*time.Millisecond, options.Between(100*time.Millisecond, time.Hour),
		"time between two attempts to acquire or renew the lease")
	g.CheckRelation(o.checkElection)
	return g
}

// checkElection checks the relations between the three durations of leader election: a leader must
// give up before a standby takes over, and must be able to try more than once before it gives up.
func (o *Options) checkElection() error {
	var errs []error
	if o.RenewDeadline >= o.LeaseDuration {
		errs = append(errs, fmt.Errorf("--%s=%s: must be less than --%s, which is %s",
			flagRenewDeadline, o.RenewDeadline, flagLeaseDuration, o.LeaseDuration))
	}
	// client-go requires that the renew deadline be greater than 1.2 retry periods.
	if o.RetryPeriod >= o.RenewDeadline*5/6 {
		errs = append(errs, fmt.Errorf("--%s=%s: must be less than 5/6 of --%s, which is %s",
			flagRetryPeriod, o.RetryPeriod, flagRenewDeadline, o.RenewDeadline))
	}
	return errors.Join(errs...)
}

func (o *Options) metricsGroup() *options.Group {
	g := options.NewGroup("metrics")
	g.String(&o.MetricsBindAddress, "metrics-bind-address", ":8443", checkBindAddress,
		"`host:port` to serve /metrics on; 0 disables it")
	g.Bool(&o.MetricsSecure, "metrics-secure", true,
		"serve metrics over HTTPS, to clients authorized to GET /metrics; otherwise over HTTP, to every client")
	g.String(&o.MetricsCertDir, flagMetricsCertDir, "", nil,
		"`directory` with the certificate and key for HTTPS (default: a self-signed certificate created at start)")
	g.String(&o.MetricsCertName, "metrics-cert-name", "tls.crt", checkNotEmpty,
		"`file` name of the certificate in --metrics-cert-dir")
	g.String(&o.MetricsKeyName, "metrics-key-name", "tls.key", checkNotEmpty,
		"`file` name of the key in --metrics-cert-dir")
	return g
}

func (o *Options) processGroup() *options.Group {
	g := options.NewGroup("process")
	g.String(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", checkBindAddress,
		"`host:port` to serve /healthz and /readyz on; 0 disables it")
	g.String(&o.PprofBindAddress, "pprof-bind-address", "0", checkBindAddress,
		"`host:port` to serve Go profiles on, to every client; 0 disables it")
	g.Duration(&o.GracefulShutdownTimeout, "graceful-shutdown-timeout", 20*time.Second, options.Between(time.Second, time.Hour),
		"time that running reconciles have to finish after SIGTERM or SIGINT")
	g.Bool(&o.VerifyDecoding, "verify-decoding", false,
		"decode every cached pod and node a second time, by client-go, and use its values if they differ; for debugging, at several times the CPU")
	g.String(&o.LogLevel, "log-level", logLevelInfo, checkLogLevel,
		"verbosity of the log: `level` error, info, debug, trace, or a number from 0 (info) to 9 (every API request and more)")
	g.String(&o.LogFormat, "log-format", logFormatJSON, checkLogFormat,
		"`format` of the log: json or text")
	return g
}

func checkLogLevel(value string) error {
	_, err := parseLogLevel(value)
	return err
}

func checkLogFormat(value string) error {
	if allowed := []string{logFormatJSON, logFormatText}; !slices.Contains(allowed, value) {
		return fmt.Errorf("must be one of %q", allowed)
	}
	return nil
}

func checkNamespaces(values []string) error {
	for _, value := range values {
		if problems := validation.IsDNS1123Label(value); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", value, problems[0])
		}
	}
	return nil
}

func checkNotEmpty(value string) error {
	if value == "" {
		return errors.New("must not be empty")
	}
	return nil
}

func checkBindAddress(value string) error {
	if value == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("must be host:port with a port from 0 to 65535, or \"0\" to turn it off")
	}
	return nil
}
