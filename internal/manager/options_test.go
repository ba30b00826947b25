// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsValidate(t *testing.T) {
	known := strings.Join(controllerNames(allControllers), ", ")
	for _, tc := range []struct {
		name string
		set  func(*Options)
		want string // all of the message; empty if the options are right
	}{
		{"the defaults", func(*Options) {}, ""},
		{"a client limit", func(o *Options) { o.KubeAPIQPS = 50 }, ""},
		{"a negative client limit", func(o *Options) { o.KubeAPIQPS = -1 }, "--kube-api-qps=-1: must be from 0 to 100000"},
		{"no burst", func(o *Options) { o.KubeAPIBurst = 0 }, "--kube-api-burst=0: must be from 1 to 100000"},
		{"an unknown controller", func(o *Options) { o.Controllers = []string{"nodepol"} },
			`--controllers=nodepol: there is no controller "nodepol"; there are: ` + known},
		{"no controller", func(o *Options) { o.Controllers = nil },
			"--controllers=: leaves no controller to run; there are: " + known},
		{"a namespace", func(o *Options) { o.Namespaces = []string{"shop"} }, ""},
		{"no namespace", func(o *Options) { o.Namespaces = []string{"shop/web"} },
			`--namespaces=shop/web: "shop/web" is not the name of a namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{"no restarts at once", func(o *Options) { o.MaxConcurrentRestarts = 0 }, "--max-concurrent-restarts=0: must be from 1 to 100000"},
		{"no share", func(o *Options) { o.RestartNamespaceShare = 101 }, "--restart-namespace-share=101: must be from 1 to 100"},
		{"nobody to look at restarts", func(o *Options) { o.RestartConcurrency = 0 }, "--restart-concurrency=0: must be from 1 to 1024"},
		{"no concurrency", func(o *Options) { o.NodeConcurrency = 0 }, "--node-concurrency=0: must be from 1 to 1024"},
		{"too much concurrency", func(o *Options) { o.NodeConcurrency = 1025 }, "--node-concurrency=1025: must be from 1 to 1024"},
		{"status at every turn", func(o *Options) { o.StatusInterval = 0 }, "--status-interval=0s: must be from 100ms to 1h0m0s"},
		{"no NoExecute share", func(o *Options) { o.NoExecuteShare = 0 }, "--no-execute-share=0: must be from 1 to 100"},
		{"more than all", func(o *Options) { o.NoExecuteShare = 101 }, "--no-execute-share=101: must be from 1 to 100"},
		{"NoExecute at once", func(o *Options) { o.NoExecuteInterval = 0 }, "--no-execute-interval=0s: must be from 100ms to 24h0m0s"},
		{"everything off", func(o *Options) {
			o.MetricsBindAddress, o.HealthProbeBindAddress, o.PprofBindAddress = "0", "0", "0"
		}, ""},
		{"a loopback address", func(o *Options) { o.PprofBindAddress = "[::1]:6060" }, ""},
		{"a port alone", func(o *Options) { o.MetricsBindAddress = "8443" },
			`--metrics-bind-address="8443": must be host:port with a port from 0 to 65535, or "0" to turn it off`},
		{"a port too high", func(o *Options) { o.HealthProbeBindAddress = ":65536" },
			`--health-probe-bind-address=":65536": must be host:port with a port from 0 to 65535, or "0" to turn it off`},
		{"a port by name", func(o *Options) { o.PprofBindAddress = ":http" },
			`--pprof-bind-address=":http": must be host:port with a port from 0 to 65535, or "0" to turn it off`},
		{"no certificate name", func(o *Options) { o.MetricsCertName = "" }, `--metrics-cert-name="": must not be empty`},
		{"no key name", func(o *Options) { o.MetricsKeyName = "" }, `--metrics-key-name="": must not be empty`},
		{"the leader gives up too late", func(o *Options) { o.RenewDeadline = o.LeaseDuration },
			"--leader-elect-renew-deadline=15s: must be less than --leader-elect-lease-duration, which is 15s"},
		{"the leader has one try", func(o *Options) { o.RetryPeriod = 9 * time.Second },
			"--leader-elect-retry-period=9s: must be less than 5/6 of --leader-elect-renew-deadline, which is 10s"},
		{"no lease duration", func(o *Options) { o.LeaseDuration = 0 }, "--leader-elect-lease-duration=0s: must be from 1s to 1h0m0s"},
		{"no time to stop", func(o *Options) { o.GracefulShutdownTimeout = 0 }, "--graceful-shutdown-timeout=0s: must be from 1s to 1h0m0s"},
		{"a level by name", func(o *Options) { o.LogLevel = "trace" }, ""},
		{"a level by number", func(o *Options) { o.LogLevel = "9" }, ""},
		{"a level too high", func(o *Options) { o.LogLevel = "10" },
			`--log-level="10": must be one of ["error" "info" "debug" "trace"], or a number from 0 to 9`},
		{"an unknown level", func(o *Options) { o.LogLevel = "warn" },
			`--log-level="warn": must be one of ["error" "info" "debug" "trace"], or a number from 0 to 9`},
		{"an unknown format", func(o *Options) { o.LogFormat = "xml" }, `--log-format="xml": must be one of ["json" "text"]`},
		{"two things wrong", func(o *Options) { o.NoExecuteShare, o.LogFormat = 0, "xml" },
			"--no-execute-share=0: must be from 1 to 100\n--log-format=\"xml\": must be one of [\"json\" \"text\"]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := DefaultOptions()
			tc.set(&opts)
			got := ""
			if err := opts.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got:  %s\nwant: %s", got, tc.want)
			}
		})
	}
}

func TestLeaseNamespaceOutsideACluster(t *testing.T) {
	opts := DefaultOptions()
	if got, err := leaseNamespace(opts); got != "" || err != nil {
		t.Errorf("without leader election: got %q, %v", got, err)
	}
	opts.LeaderElect = true
	if _, err := leaseNamespace(opts); err == nil || !strings.Contains(err.Error(), "--leader-elect-resource-namespace") {
		t.Errorf("without a namespace: got %v, want an error that names the flag", err)
	}
	opts.LeaderElectNamespace = "tidekeeper-system"
	if got, err := leaseNamespace(opts); got != "tidekeeper-system" || err != nil {
		t.Errorf("with a namespace: got %q, %v", got, err)
	}
}
