// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/sandbox/client"
	"tidekeeper.dev/tidekeeper/sandbox/internal/dns"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/incluster"
)

// Applications are the running applications of a workload, for a single run.
type Applications struct {
	client kubernetes.Interface
	all    []application
	undo   []func() error
	ctx    context.Context
	stop   context.CancelFunc

	// log receives the operator's requests to the applications.
	log *observe.Log

	mu sync.Mutex
	// disturbed is the fault in force, or nil. answers holds the last answer to each request that only
	// reads.
	disturbed *Disturbed
	answers   map[string][]byte
	// open holds the operator's connections, each with the pod that it leads to.
	open map[*net.TCPConn]types.UID
}

// application is an application with the address at which its program, or the server of its HTTP
// answers, listens on this machine.
type application struct {
	workload.Application
	address string
}

// Start returns applications for a sandbox, of which config has the rights of an administrator. It
// adds the operator's requests to the log. It does not start the applications' programs. The caller
// must call End, also after an error.
func Start(config *rest.Config, list []workload.Application, log *observe.Log) (*Applications, error) {
	a := &Applications{open: map[*net.TCPConn]types.UID{}, answers: map[string][]byte{}, log: log}
	a.ctx, a.stop = context.WithCancel(context.Background())
	if len(list) == 0 {
		return a, nil
	}
	var err error
	if a.client, err = kubernetes.NewForConfig(config); err != nil {
		return a, err
	}
	for _, described := range list {
		address, err := a.serve(described)
		if err != nil {
			return a, err
		}
		a.all = append(a.all, application{described, address})
	}
	return a, a.followPods()
}

// followPods starts to reset connections whose pod ends.
func (a *Applications) followPods() error {
	pods := informers.NewSharedInformerFactory(a.client, 0).Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, pod any) {
			if pod := pod.(*corev1.Pod); pod.Status.Phase != corev1.PodRunning {
				a.reset(pod.UID)
			}
		},
		DeleteFunc: func(gone any) {
			if last, is := gone.(cache.DeletedFinalStateUnknown); is {
				gone = last.Obj
			}
			a.reset(gone.(*corev1.Pod).UID)
		},
	})
	go pods.RunWithContext(a.ctx)
	return err
}

// reset resets the operator's connections to a pod.
func (a *Applications) reset(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for connection, of := range a.open {
		if of == pod {
			_ = connection.SetLinger(0)
			_ = connection.Close()
		}
	}
}

// opened adds a connection to a pod, and returns a function that removes it.
func (a *Applications) opened(connection *net.TCPConn, pod types.UID) (closed func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[connection] = pod
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, connection)
	}
}

// serve returns the address of an application, and starts the server of its HTTP answers.
func (a *Applications) serve(described workload.Application) (string, error) {
	if described.Program != "" {
		address, release, err := client.FreeAddress()
		if err == nil {
			a.undo = append(a.undo, release)
		}
		return address, err
	}
	listener, err := (&net.ListenConfig{}).Listen(a.ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: table(described.HTTP), ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(listener) }()
	a.undo = append(a.undo, server.Close)
	return listener.Addr().String(), nil
}

// Programs returns the commands of the applications that are programs. Each listens on the address in
// the environment variable ADDRESS. The starts and ends of its processes are recorded in the log, under
// the name of the application.
func (a *Applications) Programs(log *observe.ProcessLog) []lab.Program {
	var programs []lab.Program
	for i := range a.all {
		if command := a.all[i].Program; command != "" {
			programs = append(programs, lab.Program{Command: command, Environment: []string{"ADDRESS=" + a.all[i].address}, Log: log, LogName: a.all[i].Name()})
		}
	}
	return programs
}

// Program returns the index of the named application's program in Programs, or -1 if it has none.
func (a *Applications) Program(name string) int {
	index := -1
	for i := range a.all {
		if a.all[i].Program == "" {
			continue
		}
		index++
		if a.all[i].Name() == name {
			return index
		}
	}
	return -1
}

// End stops the servers and ends all connections.
func (a *Applications) End() {
	a.Release()
	a.stop()
	for _, do := range a.undo {
		_ = do()
	}
}

// Serve answers the names and the connections of a process of the operator, until its network is
// closed.
func (a *Applications) Serve(network *incluster.Network) {
	if network.Names() == nil {
		return
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		dns.Serve(network.Names(), func(name string) ([]netip.Addr, bool) {
			c, err := read(a.ctx, a.client)
			if err != nil {
				return nil, false
			}
			return c.addresses(name)
		})
	})
	for _, listener := range network.Ports() {
		serving.Go(func() { a.accept(listener) })
	}
	serving.Wait()
}

func (a *Applications) accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go a.connect(connection.(*net.TCPConn))
	}
}

// connect connects the operator to the application of the pod that it has connected to. If there is
// none, the operator's connection is reset, as a connection to a pod that does not listen is.
func (a *Applications) connect(operator *net.TCPConn) {
	defer operator.Close()
	to, app, pod, err := a.dial(operator.LocalAddr().(*net.TCPAddr))
	if err != nil {
		_ = operator.SetLinger(0)
		return
	}
	defer to.Close()
	defer a.opened(operator, pod.UID)()
	if !a.runs(pod) { // It may have ended before the connection was noted.
		_ = operator.SetLinger(0)
		return
	}
	defer context.AfterFunc(a.ctx, func() { _ = operator.Close(); _ = to.Close() })()
	a.Pass(app.Name(), operator, to)
}

// errNobody says that nothing answers at an address.
var errNobody = errors.New("no application answers for a pod with this address and port")

// dial connects to the application at an address of the cluster, and returns that, and the pod for
// which it answers.
func (a *Applications) dial(address *net.TCPAddr) (net.Conn, *application, *corev1.Pod, error) {
	c, err := read(a.ctx, a.client)
	if err != nil {
		return nil, nil, nil, err
	}
	app, pod := of(a.all, c, address)
	if app == nil {
		return nil, nil, nil, errNobody
	}
	connection, err := app.dial(a.ctx)
	return connection, app, pod, err
}

// runs reports whether a pod still runs.
func (a *Applications) runs(pod *corev1.Pod) bool {
	now, err := a.client.CoreV1().Pods(pod.Namespace).Get(a.ctx, pod.Name, metav1.GetOptions{})
	return err == nil && now.UID == pod.UID && now.Status.Phase == corev1.PodRunning
}

// of returns the pod behind an address and the application for it, or nil.
func of(all []application, c *cluster, address *net.TCPAddr) (*application, *corev1.Pod) {
	pod, port := c.behind(address.IP.String(), address.Port)
	if pod == nil {
		return nil, nil
	}
	for i := range all {
		if answers(&all[i], pod, port) {
			return &all[i], pod
		}
	}
	return nil, nil
}

func answers(a *application, pod *corev1.Pod, port int) bool {
	return a.Port == port && a.Selector.Matches(labels.Set(pod.Labels))
}

// patience is the time for which a connection waits until an application's program listens. It is
// long, as no verdict may depend on how fast the program starts.
const patience = time.Minute

// dial connects to the application, which may have been started just now.
func (a *application) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp4", a.address)
		if err == nil {
			return connection, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}
