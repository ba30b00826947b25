// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

const streamingPods = `
apiVersion: v1
kind: Pod
metadata:
  name: plain
spec: {containers: [{name: main, image: a}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: told
  annotations:
    sandbox.tidekeeper.dev/logs: "one\ntwo\nthree"
    sandbox.tidekeeper.dev/exec-output: "no such queue\n"
    sandbox.tidekeeper.dev/exec-exit-code: "69"
spec: {containers: [{name: main, image: a}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: hangs
  annotations: {sandbox.tidekeeper.dev/exec-exit-code: hang}
spec: {containers: [{name: main, image: a}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: mistaken
  annotations: {sandbox.tidekeeper.dev/exec-exit-code: "a lot"}
spec: {containers: [{name: main, image: a}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: waits
  annotations: {sandbox.tidekeeper.dev/behavior: image-pull-backoff}
spec: {containers: [{name: main, image: a}]}
`

// TestStreaming checks that logs, exec, attach and port-forward respond as a pod's annotations
// specify, through kubectl and the API server.
func TestStreaming(t *testing.T) {
	t.Parallel()
	s := start(t, "--nodes=1", owned)
	namespace := newNamespace(t, s)
	apply(t, s, namespace, streamingPods)
	kubectl := func(args ...string) result {
		return s.run(t, append([]string{"kubectl", "-n", namespace}, args...)...)
	}
	if r := kubectl("wait", "--for=condition=Ready", longTimeout, "pod/plain", "pod/told", "pod/hangs", "pod/mistaken"); r.code != 0 {
		t.Fatal(r.stdout, r.stderr)
	}
	// The API server refuses to connect to a container of a pod that has no node yet.
	if r := kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff", longTimeout, "pod/waits"); r.code != 0 {
		t.Fatal(r.stdout, r.stderr)
	}
	for _, tc := range []struct {
		name, args string
		code       int
		out, err   string
	}{
		{name: "logs", args: "logs told", out: "one\ntwo\nthree\n"},
		{name: "the last of them", args: "logs told --tail=1", out: "three\n"},
		{name: "none", args: "logs plain"},
		{name: "a command", args: "exec plain -- ls /"},
		{name: "one with an exit code", args: "exec told -- rabbitmqctl list", code: 69, out: "no such queue\n", err: "exit code 69"},
		{name: "a mistake in the annotation", args: "exec mistaken -- ls", code: 1, err: `is "a lot": want a number from 0 to 255, or "hang"`},
		{name: "a container that does not run", args: "exec waits -- ls", code: 1, err: `container "main" of pod "waits" does not run`},
		{name: "no such pod", args: "exec missing -- ls", code: 1, err: `pods "missing" not found`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := kubectl(strings.Fields(tc.args)...)
			if r.code != tc.code || r.stdout != tc.out || !strings.Contains(r.stderr, tc.err) {
				t.Errorf("exit code %d\n%q\n%q", r.code, r.stdout, r.stderr)
			}
		})
	}
	t.Run("a command that hangs", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := exec.CommandContext(ctx, binary, s.withDir([]string{"kubectl", "-n", namespace, "exec", "hangs", "--", "ls"})...).Run()
		if ctx.Err() == nil {
			t.Errorf("it ended: %v", err)
		}
	})
	t.Run("a port", func(t *testing.T) {
		forward := exec.Command(binary, s.withDir([]string{"kubectl", "-n", namespace, "port-forward", "pod/plain", ":8080"})...)
		out, err := forward.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		process, err := client.Start(forward)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = process.Kill() }()
		line := make([]byte, 200)
		n, err := out.Read(line)
		port := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindSubmatch(line[:n])
		if port == nil {
			t.Fatalf("%q, %v", line[:n], err)
		}
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%s/", port[1]))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "pod "+namespace+"/plain, port 8080\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}
