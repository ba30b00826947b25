// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
)

func TestOptionsValidate(t *testing.T) {
	known := strings.Join(namesOf(controllers()), ", ")
	for _, tc := range []struct {
		name string
		args []string
		want string // want is the whole error message; empty for valid options
	}{
		{"the defaults", nil, ""},
		{"a client limit", []string{"--kube-api-qps=50"}, ""},
		{"a negative client limit", []string{"--kube-api-qps=-1"}, "--kube-api-qps=-1: must be from 0 to 100000"},
		{"no burst", []string{"--kube-api-burst=0"}, "--kube-api-burst=0: must be from 1 to 100000"},
		{"an unknown controller", []string{"--controllers=nodepol"},
			`--controllers=nodepol: there is no controller "nodepol"; there are: ` + known},
		{"no controller", []string{"--controllers="},
			"--controllers=: leaves no controller to run; there are: " + known},
		{"a namespace", []string{"--namespaces=shop"}, ""},
		{"no namespace", []string{"--namespaces=shop/web"},
			`--namespaces=shop/web: "shop/web" is not the name of a namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{"no restarts at once", []string{"--max-concurrent-restarts=0"}, "--max-concurrent-restarts=0: must be from 1 to 100000"},
		{"no share", []string{"--restart-namespace-share=101"}, "--restart-namespace-share=101: must be from 1 to 100"},
		{"no restart workers", []string{"--restart-concurrency=0"}, "--restart-concurrency=0: must be from 1 to 1024"},
		{"no concurrency", []string{"--node-concurrency=0"}, "--node-concurrency=0: must be from 1 to 1024"},
		{"too much concurrency", []string{"--node-concurrency=1025"}, "--node-concurrency=1025: must be from 1 to 1024"},
		{"status at every turn", []string{"--status-interval=0"}, "--status-interval=0s: must be from 100ms to 1h0m0s"},
		{"no NoExecute share", []string{"--no-execute-share=0"}, "--no-execute-share=0: must be from 1 to 100"},
		{"more than all", []string{"--no-execute-share=101"}, "--no-execute-share=101: must be from 1 to 100"},
		{"NoExecute at once", []string{"--no-execute-interval=0"}, "--no-execute-interval=0s: must be from 100ms to 24h0m0s"},
		{"everything off", []string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--pprof-bind-address=0"}, ""},
		{"a loopback address", []string{"--pprof-bind-address=[::1]:6060"}, ""},
		{"a port alone", []string{"--metrics-bind-address=8443"},
			`--metrics-bind-address="8443": must be host:port with a port from 0 to 65535, or "0" to turn it off`},
		{"a port too high", []string{"--health-probe-bind-address=:65536"},
			`--health-probe-bind-address=":65536": must be host:port with a port from 0 to 65535, or "0" to turn it off`},
		{"a port by name", []string{"--pprof-bind-address=:http"},
			`--pprof-bind-address=":http": must be host:port with a port from 0 to 65535, or "0" to turn it off`},
		{"no certificate name", []string{"--metrics-cert-name="}, `--metrics-cert-name="": must not be empty`},
		{"no key name", []string{"--metrics-key-name="}, `--metrics-key-name="": must not be empty`},
		{"the leader gives up too late", []string{"--leader-elect-renew-deadline=15s"},
			"--leader-elect-renew-deadline=15s: must be less than --leader-elect-lease-duration, which is 15s"},
		{"the leader has one try", []string{"--leader-elect-retry-period=9s"},
			"--leader-elect-retry-period=9s: must be less than 5/6 of --leader-elect-renew-deadline, which is 10s"},
		{"no lease duration", []string{"--leader-elect-lease-duration=0"}, "--leader-elect-lease-duration=0s: must be from 1s to 1h0m0s"},
		{"no time to stop", []string{"--graceful-shutdown-timeout=0"}, "--graceful-shutdown-timeout=0s: must be from 1s to 1h0m0s"},
		{"a level by name", []string{"--log-level=trace"}, ""},
		{"a level by number", []string{"--log-level=9"}, ""},
		{"a level too high", []string{"--log-level=10"},
			`--log-level="10": must be one of ["error" "info" "debug" "trace"], or a number from 0 to 9`},
		{"an unknown level", []string{"--log-level=warn"},
			`--log-level="warn": must be one of ["error" "info" "debug" "trace"], or a number from 0 to 9`},
		{"an unknown format", []string{"--log-format=xml"}, `--log-format="xml": must be one of ["json" "text"]`},
		{"two things wrong", []string{"--no-execute-share=0", "--log-format=xml"},
			"--no-execute-share=0: must be from 1 to 100\n--log-format=\"xml\": must be one of [\"json\" \"text\"]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := NewOptions()
			if err := allFlags(opts).Parse(tc.args); err != nil {
				t.Fatal(err)
			}
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
	opts := NewOptions()
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
