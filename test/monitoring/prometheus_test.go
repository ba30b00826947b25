// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// prometheus is a running Prometheus that scrapes a manager every second.
type prometheus struct{ address string }

// gates writes a file for --restart-queries with the given queries to this Prometheus, and returns
// its path.
func (p prometheus) gates(t *testing.T, queries ...any) string {
	t.Helper()
	return writeYAML(t, t.TempDir(), "queries.yaml", map[string]any{
		"prometheus": map[string]any{"url": "http://" + p.address, "timeoutSeconds": 10},
		"queries":    queries,
	})
}

// watch starts Prometheus with Tidekeeper's alerting rules. It scrapes the manager as configured in
// the ServiceMonitor, with the token that the ServiceMonitor references.
func (p prometheus) watch(t *testing.T, manager *framework.Manager) {
	t.Helper()
	var service corev1.Service
	readYAML(t, &service, "manager", "metrics_service.yaml")
	var monitor struct {
		Spec struct {
			Selector  metav1.LabelSelector
			Endpoints []struct {
				Port, Path, Scheme string
				Authorization      struct{ Credentials corev1.SecretKeySelector }
				TLSConfig          struct{ InsecureSkipVerify bool }
			}
		}
	}
	readYAML(t, &monitor, "monitoring", "service_monitor.yaml")
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if service.Labels[key] != value {
			t.Errorf("the ServiceMonitor wants a Service with %s: %s, which has %q", key, value, service.Labels[key])
		}
	}
	endpoint := monitor.Spec.Endpoints[0]
	if service.Spec.Ports[0].Name != endpoint.Port || endpoint.Authorization.Credentials.Name == "" {
		t.Errorf("the ServiceMonitor has the endpoint %+v, the Service the ports %+v", endpoint, service.Spec.Ports)
	}

	_, target, _ := strings.Cut(manager.Metrics, "://")
	p.start(t, map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rulesFile(t)},
		"scrape_configs": []any{map[string]any{
			"job_name": service.Name, "metrics_path": endpoint.Path, "scheme": endpoint.Scheme,
			"authorization":  map[string]any{"credentials": readerToken(t, endpoint.Authorization.Credentials)},
			"tls_config":     map[string]any{"insecure_skip_verify": endpoint.TLSConfig.InsecureSkipVerify},
			"static_configs": []any{map[string]any{"targets": []string{target}}},
		}},
	})
	// Prometheus is ready some seconds before it scrapes its targets.
	since := time.Now()
	framework.Eventually(t, "Prometheus scrapes the manager", func() error { return p.answered("up == 1", since) })
}

// start runs Prometheus with the given configuration until the test ends.
func (p prometheus) start(t *testing.T, config map[string]any) {
	t.Helper()
	dir := t.TempDir()
	file := writeYAML(t, dir, "prometheus.yaml", config)
	framework.RunTool(t, "PROMETHEUS_BIN", "prometheus", "--config.file="+file, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+p.address)
}

// readerToken creates the service account that the ServiceMonitor uses, and returns its token.
func readerToken(t *testing.T, key corev1.SecretKeySelector) string {
	t.Helper()
	file := filepath.Join(framework.Root(), "config", "monitoring", "service_monitor_token.yaml")
	if out, err := cluster.Kubectl("", "apply", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := cluster.Kubectl("", "delete", "--ignore-not-found", "-f", file); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: framework.ManagerNamespace}}
	framework.Eventually(t, "there is a token", func() error {
		if cluster.Refresh(t, secret); len(secret.Data[key.Key]) == 0 {
			return errors.New("there is none yet")
		}
		return nil
	})
	return string(secret.Data[key.Key])
}

// get requests a path of Prometheus' HTTP API and decodes the response's data.
func (p prometheus) get(path string, parameters url.Values, into any) error {
	return framework.AskPrometheus(p.address, path, parameters, into)
}

// answered evaluates a PromQL expression over the time since `since`. It returns an error if the
// evaluation fails or the result contains no number.
func (p prometheus) answered(expr string, since time.Time) error {
	var data struct {
		Result []struct{ Values [][2]any }
	}
	unix := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	if err := p.get("query_range", url.Values{"query": {expr}, "start": {unix(since)}, "end": {unix(time.Now())}, "step": {"1"}}, &data); err != nil {
		return fmt.Errorf("%s: %w", expr, err)
	}
	for _, series := range data.Result {
		for _, value := range series.Values {
			if value[1] != "NaN" {
				return nil
			}
		}
	}
	return fmt.Errorf("no number of %d series: %s", len(data.Result), expr)
}

// awaitScrape waits until Prometheus has scraped the manager after the given time.
func (p prometheus) awaitScrape(t *testing.T, after time.Time) {
	t.Helper()
	framework.EventuallyWithin(t, 5*time.Minute, "the manager has been scraped after "+after.Format(time.TimeOnly), func() error {
		var data struct{ Result []struct{ Value [2]any } }
		if err := p.get("query", url.Values{"query": {"min(timestamp(up))"}}, &data); err != nil {
			return err
		}
		if len(data.Result) != 1 {
			return fmt.Errorf("the result is %v", data.Result)
		}
		seconds, err := strconv.ParseFloat(fmt.Sprint(data.Result[0].Value[1]), 64)
		if err != nil {
			return err
		}
		if last := time.UnixMilli(int64(1000 * seconds)); !last.After(after) {
			return fmt.Errorf("the last time was %s", last.Format(time.TimeOnly))
		}
		return nil
	})
}
