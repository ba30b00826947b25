// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
)

func (n *node) streams(t *testing.T) {
	pods, err := n.managers(t)
	if err != nil {
		t.Fatal(err)
	}
	pod := pods[0].Name
	if out := n.kubectl(t, "logs", "-n", framework.ManagerNamespace, pod); !strings.Contains(out, `"msg"`) && !strings.Contains(out, "msg=") {
		t.Errorf("logs: got %q", out)
	}
	if out := n.kubectl(t, "exec", "-n", framework.ManagerNamespace, pod, "--", "/tidekeeper", "--version"); !strings.Contains(out, "tidekeeper") {
		t.Errorf("exec: got %q", out)
	}
	// The pod is also reachable through the API server's proxy.
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8081/proxy/readyz", framework.ManagerNamespace, pod)
	if out := n.kubectl(t, "get", "--raw", path); !strings.HasPrefix(out, "ok") {
		t.Errorf("readyz through the API server: got %q", out)
	}
	if out := n.forward(t, framework.ManagerNamespace, "pod/"+pod, "8081", "/readyz"); out != "ok" {
		t.Errorf("readyz through the forwarded port: got %q", out)
	}
}

// forwarding matches the output of kubectl port-forward once it forwards a port.
var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`)

// forward requests a server's path through kubectl port-forward, and returns the response.
func (n *node) forward(t *testing.T, namespace, target, port, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	binary, err := framework.Binary("SANDBOX_BIN", "sandbox")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, binary, "kubectl", "--data-dir", n.Dir, "port-forward", "-n", namespace, target, ":"+port)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = command.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	match := forwarding.FindStringSubmatch(line)
	if err != nil || match == nil {
		t.Fatalf("port-forward: got %q, %v", line, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+match[1]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("through the forwarded port: %s %s %v", response.Status, body, err)
	}
	return strings.TrimSpace(string(body))
}

// workload checks kubectl logs, exec and port-forward on a user's pod.
func (n *node) workload(t *testing.T) {
	n.deploy(t, web("used", 1, 0))
	if out := n.kubectl(t, "logs", "deployment/used", "--tail=2"); out != "started\nready\n" {
		t.Errorf("logs: got %q", out)
	}
	const text = "one line\nand another\n"
	if out, err := n.Kubectl(text, "exec", "-i", "deployment/used", "--", "/app", "copy"); out != text || err != nil {
		t.Errorf("exec: got %q, %v", out, err)
	}
	if out, err := n.Kubectl("", "exec", "deployment/used", "--", "/app", "nothing"); err == nil || !strings.Contains(out, "no command nothing") || !strings.Contains(out, "exit code 3") {
		t.Errorf("exec of a command that fails: got %q, %v", out, err)
	}
	if name := n.forward(t, "default", "deployment/used", "8080", "/"); !strings.HasPrefix(name, "used-") {
		t.Errorf("the host name through a forwarded port is %q", name)
	}
	n.Delete(t, framework.Deployment("used", 0, corev1.PodSpec{}))
}
