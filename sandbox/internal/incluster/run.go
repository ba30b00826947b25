// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say what to run, and as what.
type Options struct {
	// Config is how the administrator reaches the API server.
	Config *rest.Config
	// Program is the program and its arguments.
	Program []string
	// From names the Deployment that the program is run as; empty: none.
	From string
	// ServiceAccount has the rights that the program gets. Empty: that of the
	// Deployment, or a new one without rights.
	ServiceAccount types.NamespacedName
	// Services are those whose webhooks the program serves, beside those that select
	// its Pod.
	Services []types.NamespacedName
	// CertDir is where the program expects its serving certificate.
	CertDir string
	// WebhookPort is where the program serves webhooks; 0: the target port of the Service.
	WebhookPort int32
	// Environment are variables that it gets beside those that it has in a cluster.
	Environment []string
}

// cleanupTimeout is how long it may take to remove what the program does not need any
// more.
const cleanupTimeout = 30 * time.Second

// run is a program in the cluster.
type run struct {
	Options
	client     kubernetes.Interface
	deployment *appsv1.Deployment
	// cleanups take back, last first, what was done for the program.
	cleanups []func(context.Context) error
}

// Run runs the program, in the namespaces of this process, until it ends, and returns
// its exit code. The program is killed when the starter ends.
func Run(ctx context.Context, o Options, starter *os.File) (code int, err error) {
	// From here on, no signal ends this process before it has cleaned up.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	starterEnded := ended(starter)

	r := &run{Options: o}
	if r.client, err = kubernetes.NewForConfig(o.Config); err != nil {
		return 0, err
	}
	defer r.cleanUp()
	cmd, podDeleted, err := r.prepare(ctx)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return supervise(cmd, signals, starterEnded, podDeleted)
}

// prepare makes all that the program expects in a cluster, and the command that starts
// it. The channel gets the grace period when the Pod is deleted.
func (r *run) prepare(ctx context.Context) (*exec.Cmd, <-chan time.Duration, error) {
	var err error
	if r.From != "" {
		if r.deployment, err = findDeployment(ctx, r.client, r.From); err != nil {
			return nil, nil, err
		}
	}
	wanted, err := r.newPod(ctx)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := r.findWebhooks(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	dirs := []string{serviceAccountDir}
	if hooks != nil {
		dirs = append(dirs, r.CertDir)
	}
	if err := mount(dirs...); err != nil {
		return nil, nil, err
	}
	pod, err := r.startPod(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	// Programs that elect a leader name themselves by it. A kubelet shortens it as well.
	if err := unix.Sethostname([]byte(pod.Name[:min(len(pod.Name), longestHostName)])); err != nil {
		return nil, nil, fmt.Errorf("set the host name: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return nil, nil, err
	}
	if err := r.keepToken(ctx, pod); err != nil {
		return nil, nil, err
	}
	if hooks != nil {
		if err := r.redirect(ctx, hooks, pod); err != nil {
			return nil, nil, err
		}
	}
	cmd, err := r.command(ctx, pod)
	if err != nil {
		return nil, nil, err
	}
	return cmd, r.watchDeletion(ctx, pod), nil
}

// apiServer returns where the program finds the API server.
func (r *run) apiServer() (host, port string, _ error) {
	address, err := url.Parse(r.Config.Host)
	if err != nil {
		return "", "", err
	}
	return net.SplitHostPort(address.Host)
}

// background runs a function until the cleanup.
func (r *run) background(ctx context.Context, function func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		function(ctx)
		close(done)
	}()
	r.cleanups = append(r.cleanups, func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// onEnd adds a cleanup.
func (r *run) onEnd(cleanup func(context.Context) error) { r.cleanups = append(r.cleanups, cleanup) }

// cleanUp takes back what was done, and reports what it could not.
func (r *run) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		if err := r.cleanups[last](ctx); err != nil {
			warn(err)
		}
		r.cleanups = r.cleanups[:last]
	}
}

// warn reports what does not keep the program from running.
func warn(err error) { fmt.Fprintln(os.Stderr, "warning:", err) }
