// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package streaming serves the kubelet HTTP API of simulated nodes: logs, exec, attach and
// port-forward for the API server, and resource metrics for authorized clients. There are no
// containers, so annotations on the pod determine the responses.
//
// All simulated nodes share a socket, so that no node needs an address or a port. The egress
// configuration of the API server makes it connect to nodes through this socket, with HTTP CONNECT.
package streaming

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"tidekeeper.dev/tidekeeper/sandbox/internal/pki"
	"tidekeeper.dev/tidekeeper/sandbox/internal/socket"
)

// Annotations of a pod, which determine how its simulated kubelet responds.
const (
	// LogsAnnotation contains the text that every container of the pod has as its log.
	LogsAnnotation = "sandbox.tidekeeper.dev/logs"
	// ExecOutputAnnotation contains the output of every command executed in the pod.
	ExecOutputAnnotation = "sandbox.tidekeeper.dev/exec-output"
	// ExecExitCodeAnnotation contains the exit code of every command executed in the pod, 0 by
	// default. With the value ExecHangs, commands do not exit.
	ExecExitCodeAnnotation = "sandbox.tidekeeper.dev/exec-exit-code"
)

// ExecHangs is a value of ExecExitCodeAnnotation with which commands do not exit.
const ExecHangs = "hang"

// kubeletPort is the port on which kubelets serve their API.
const kubeletPort = "10250"

// Timeouts of client connections, with a kubelet's values.
const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

// resourceMetricsPath is the path of a kubelet's resource metrics endpoint.
const resourceMetricsPath = "/metrics/resource"

// server serves the kubelet API of all simulated nodes.
type server struct {
	client kubernetes.Interface
	meters meters
}

// Serve serves the kubelet API on a Unix socket until the context is done. It forwards requests to
// the sockets of real nodes and of programs that run as pods.
func Serve(ctx context.Context, client kubernetes.Interface, path string, realNodes []string, own Programs) error {
	_ = os.Remove(path)
	// Only this user may access the socket, because its clients can run commands in pods.
	listener, err := socket.Listen(ctx, path)
	if err != nil {
		return fmt.Errorf("the socket of the kubelets: %w", err)
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	answers := &server{client: client, meters: meters{byNode: map[string]*meter{}}}
	inner := &http.Server{Handler: answers.guarded(answers.handler()), ConnContext: withTunnel, ReadHeaderTimeout: 30 * time.Second}
	tunnels := &queue{connections: make(chan net.Conn), closed: ctx.Done(), address: listener.Addr()}
	outer := &http.Server{Handler: connect(tunnels, realNodes, &programs{own, client}), ReadHeaderTimeout: 30 * time.Second}
	context.AfterFunc(ctx, func() {
		_ = outer.Close()
		_ = inner.Close()
	})
	go func() {
		_ = inner.Serve(tls.NewListener(tunnels, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	}()
	if err := outer.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// selfSigned returns a certificate for the simulated kubelets. By default, API servers do not
// verify the certificates of kubelets.
func selfSigned() (tls.Certificate, error) {
	ca, err := pki.NewAuthority("kubelets-ca")
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := ca.Server("kubelets", []string{"localhost"}, nil)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(pair.Cert, pair.Key)
}

// handler returns the handler for the paths of the kubelet API.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+resourceMetricsPath, s.resourceMetrics)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, path := range []string{"/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"} {
		mux.HandleFunc("/exec"+path, s.exec)
		mux.HandleFunc("/attach"+path, s.attach)
	}
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.portForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", s.portForward)
	return mux
}

// pod returns the pod that a request names. It responds with an error if the pod does not exist, or
// if `running` is set and the container that the request names does not run.
func (s *server) pod(w http.ResponseWriter, r *http.Request, running bool) (*corev1.Pod, bool) {
	pod, err := s.client.CoreV1().Pods(r.PathValue("namespace")).Get(r.Context(), r.PathValue("pod"), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return nil, false
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil, false
	}
	name := r.PathValue("container")
	if running && name != "" && !runs(pod, name) {
		http.Error(w, fmt.Sprintf("container %q of pod %q does not run", name, pod.Name), http.StatusInternalServerError)
		return nil, false
	}
	return pod, true
}

func runs(pod *corev1.Pod, name string) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return statuses[i].State.Running != nil
			}
		}
	}
	return false
}

// lines returns the log of a pod's containers.
func lines(pod *corev1.Pod) string {
	text := pod.Annotations[LogsAnnotation]
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

func (s *server) logs(w http.ResponseWriter, r *http.Request) {
	pod, ok := s.pod(w, r, false)
	if !ok {
		return
	}
	text := lines(pod)
	if tail, err := strconv.Atoi(r.FormValue("tailLines")); err == nil && tail >= 0 {
		all := strings.SplitAfter(text, "\n")
		all = all[:len(all)-1]
		text = strings.Join(all[max(0, len(all)-tail):], "")
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text)
	if follow, _ := strconv.ParseBool(r.FormValue("follow")); follow && runs(pod, r.PathValue("container")) {
		_ = http.NewResponseController(w).Flush()
		s.untilEnd(r.Context(), pod, r.PathValue("container"))
	}
}

// untilEnd waits until the container has terminated or the client has disconnected.
func (s *server) untilEnd(ctx context.Context, pod *corev1.Pod, container string) {
	for {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
		now, err := s.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (now.UID != pod.UID || !runs(now, container)) {
			return
		}
	}
}

// command returns the pod and the streams of an exec or attach request. If the request is invalid,
// it responds with an error and returns false.
func (s *server) command(w http.ResponseWriter, r *http.Request) (pod *corev1.Pod, options *remotecommand.Options, ok bool) {
	if pod, ok = s.pod(w, r, true); !ok {
		return nil, nil, false
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil, false
	}
	return pod, options, true
}

func (s *server) exec(w http.ResponseWriter, r *http.Request) {
	pod, options, ok := s.command(w, r)
	if !ok {
		return
	}
	remotecommand.ServeExec(w, r, executor{pod}, pod.Name, string(pod.UID), r.PathValue("container"), r.Form["command"], options,
		idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

// executor simulates exec commands as the annotations on a pod specify.
type executor struct{ pod *corev1.Pod }

// ExecInContainer ignores the command and its standard input. It writes the output and returns the
// exit code from the pod's annotations.
func (e executor) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, _ io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if out != nil {
		if _, err := io.WriteString(out, e.pod.Annotations[ExecOutputAnnotation]); err != nil {
			return err
		}
	}
	text, given := e.pod.Annotations[ExecExitCodeAnnotation]
	if text == ExecHangs {
		<-ctx.Done()
		return ctx.Err()
	}
	code, err := strconv.Atoi(text)
	switch {
	case !given, err == nil && code == 0:
		return nil
	case err != nil || code < 0 || code > 255:
		return fmt.Errorf("the annotation %s is %q: want a number from 0 to 255, or %q", ExecExitCodeAnnotation, text, ExecHangs)
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("exit code %d", code), Code: code}
}

func (s *server) attach(w http.ResponseWriter, r *http.Request) {
	pod, options, ok := s.command(w, r)
	if !ok {
		return
	}
	remotecommand.ServeAttach(w, r, attacher{s, pod}, pod.Name, string(pod.UID), r.PathValue("container"), options,
		idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

// attacher streams the output of a container.
type attacher struct {
	*server
	pod *corev1.Pod
}

// AttachContainer writes the container's output, and waits until the container terminates.
func (a attacher) AttachContainer(ctx context.Context, _, _, container string, _ io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if out != nil {
		if _, err := io.WriteString(out, lines(a.pod)); err != nil {
			return err
		}
	}
	a.untilEnd(ctx, a.pod, container)
	return nil
}

func (s *server) portForward(w http.ResponseWriter, r *http.Request) {
	pod, ok := s.pod(w, r, false)
	if !ok {
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{pod}, pod.Name, string(pod.UID), options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}

// forwarder answers port-forward requests for any port of a pod.
type forwarder struct{ pod *corev1.Pod }

// PortForward responds to each HTTP request with the pod's name and the port.
func (f forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	reader := bufio.NewReader(stream)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return nil // The client has disconnected, or has sent no HTTP request.
		}
		_, _ = io.Copy(io.Discard, request.Body)
		text := fmt.Sprintf("pod %s/%s, port %d\n", f.pod.Namespace, f.pod.Name, port)
		answer := &http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request, ContentLength: int64(len(text)),
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)),
		}
		if err := answer.Write(stream); err != nil || request.Close {
			return err
		}
	}
}
