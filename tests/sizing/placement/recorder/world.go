package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/awslabs/operatorpkg/status"
	"github.com/patrickmn/go-cache"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	corecloudprovider "sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
	coretest "sigs.k8s.io/karpenter/pkg/test"

	"github.com/go-logr/logr"

	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awscache "github.com/aws/karpenter-provider-aws/pkg/cache"
	"github.com/aws/karpenter-provider-aws/pkg/cloudprovider"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily"
	"github.com/aws/karpenter-provider-aws/pkg/providers/arczonalshift"
	"github.com/aws/karpenter-provider-aws/pkg/providers/capacityreservation"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instance"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	"github.com/aws/karpenter-provider-aws/pkg/providers/launchtemplate"
	"github.com/aws/karpenter-provider-aws/pkg/providers/placementgroup"
	"github.com/aws/karpenter-provider-aws/pkg/providers/securitygroup"
	"github.com/aws/karpenter-provider-aws/pkg/providers/subnet"
	awstest "github.com/aws/karpenter-provider-aws/pkg/test"
)

const region = "us-east-1"

var zones = []v1.Subnet{
	{ID: "subnet-a", Zone: "us-east-1a", ZoneID: "use1-az1"},
	{ID: "subnet-b", Zone: "us-east-1b", ZoneID: "use1-az2"},
	{ID: "subnet-c", Zone: "us-east-1c", ZoneID: "use1-az4"},
}

// World is what does not change between scenarios: the instance types and their on-demand prices.
type World struct {
	infos     []ec2types.InstanceTypeInfo
	offerings []ec2types.InstanceTypeOffering
	onDemand  map[ec2types.InstanceType]float64
}

func integer(row map[string]string, key string) int64 {
	if row[key] == "" {
		return 0
	}
	n, err := strconv.ParseInt(row[key], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s of %s: %v", key, row["type"], err))
	}
	return n
}

// manufacturer is of the CPU: the CSV has none, so it follows the family's name (Graviton by architecture, "a" after the
// generation for AMD).
func manufacturer(row map[string]string) string {
	if row["arch"] == "arm64" {
		return "AWS"
	}
	family, _, _ := strings.Cut(row["type"], ".")
	family, _, _ = strings.Cut(family, "-")
	suffix := strings.TrimLeft(strings.TrimLeft(family, "abcdefghijklmnopqrstuvwxyz"), "0123456789")
	if strings.HasPrefix(suffix, "a") || strings.HasPrefix(family, "g4ad") {
		return "AMD"
	}
	return "Intel"
}

func info(row map[string]string) ec2types.InstanceTypeInfo {
	name := row["type"]
	arch := ec2types.ArchitectureTypeX8664
	if row["arch"] == "arm64" {
		arch = ec2types.ArchitectureTypeArm64
	}
	out := ec2types.InstanceTypeInfo{
		InstanceType:                  ec2types.InstanceType(name),
		CurrentGeneration:             aws.Bool(row["current_generation"] == "true"),
		BareMetal:                     aws.Bool(row["bare_metal"] == "true"),
		BurstablePerformanceSupported: aws.Bool(row["burstable"] == "true"),
		Hypervisor:                    ec2types.InstanceTypeHypervisor(row["hypervisor"]),
		SupportedUsageClasses:         []ec2types.UsageClassType{ec2types.UsageClassTypeOnDemand},
		SupportedVirtualizationTypes:  []ec2types.VirtualizationType{ec2types.VirtualizationTypeHvm},
		ProcessorInfo: &ec2types.ProcessorInfo{
			Manufacturer:           aws.String(manufacturer(row)),
			SupportedArchitectures: []ec2types.ArchitectureType{arch},
		},
		VCpuInfo:   &ec2types.VCpuInfo{DefaultVCpus: aws.Int32(int32(integer(row, "vcpu")))},
		MemoryInfo: &ec2types.MemoryInfo{SizeInMiB: aws.Int64(integer(row, "memory_mib"))},
		NetworkInfo: &ec2types.NetworkInfo{
			MaximumNetworkInterfaces:     aws.Int32(int32(integer(row, "enis"))),
			Ipv4AddressesPerInterface:    aws.Int32(int32(integer(row, "ipv4_per_eni"))),
			EncryptionInTransitSupported: aws.Bool(true),
			DefaultNetworkCardIndex:      aws.Int32(0),
			NetworkCards: []ec2types.NetworkCardInfo{{
				NetworkCardIndex:         aws.Int32(0),
				MaximumNetworkInterfaces: aws.Int32(int32(integer(row, "enis"))),
			}},
		},
	}
	if row["spot"] == "true" {
		out.SupportedUsageClasses = append(out.SupportedUsageClasses, ec2types.UsageClassTypeSpot)
	}
	if nvme := integer(row, "local_nvme_gib"); nvme > 0 {
		out.InstanceStorageInfo = &ec2types.InstanceStorageInfo{
			NvmeSupport:   ec2types.EphemeralNvmeSupportRequired,
			TotalSizeInGB: aws.Int64(nvme),
		}
	}
	if ebs := integer(row, "ebs_baseline_mbps"); ebs > 0 {
		out.EbsInfo = &ec2types.EbsInfo{
			EbsOptimizedSupport: ec2types.EbsOptimizedSupportDefault,
			EbsOptimizedInfo:    &ec2types.EbsOptimizedInfo{MaximumBandwidthInMbps: aws.Int32(int32(ebs)), BaselineBandwidthInMbps: aws.Int32(int32(ebs))},
		}
	}
	if gpus := integer(row, "gpus"); gpus > 0 {
		out.GpuInfo = &ec2types.GpuInfo{Gpus: []ec2types.GpuDeviceInfo{{
			Name: aws.String("gpu"), Manufacturer: aws.String("NVIDIA"), Count: aws.Int32(int32(gpus)),
			MemoryInfo: &ec2types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(16384)},
		}}}
	}
	if n := integer(row, "accelerators"); n > 0 {
		if strings.HasPrefix(name, "inf") || strings.HasPrefix(name, "trn") {
			out.NeuronInfo = &ec2types.NeuronInfo{NeuronDevices: []ec2types.NeuronDeviceInfo{{
				Name: aws.String("Neuron"), Count: aws.Int32(int32(n)), CoreInfo: &ec2types.NeuronDeviceCoreInfo{Count: aws.Int32(2)},
			}}}
		} else {
			out.InferenceAcceleratorInfo = &ec2types.InferenceAcceleratorInfo{Accelerators: []ec2types.InferenceDeviceInfo{{
				Name: aws.String("accelerator"), Manufacturer: aws.String("other"), Count: aws.Int32(int32(n)),
			}}}
		}
	}
	return out
}

// NewWorld reads the rows of the catalogue.
func NewWorld(rows []map[string]string) (*World, error) {
	w := &World{onDemand: map[ec2types.InstanceType]float64{}}
	for _, row := range rows {
		i := info(row)
		w.infos = append(w.infos, i)
		for _, zone := range strings.Fields(row["zones"]) {
			w.offerings = append(w.offerings, ec2types.InstanceTypeOffering{
				InstanceType: i.InstanceType, Location: aws.String(zone), LocationType: ec2types.LocationTypeAvailabilityZone,
			})
		}
		if price := row["on_demand_usd_per_h"]; price != "" {
			usd, err := strconv.ParseFloat(price, 64)
			if err != nil {
				return nil, err
			}
			w.onDemand[i.InstanceType] = usd
		}
	}
	return w, nil
}

// prices answers as the pricing provider does once it has been updated: a type without a price has none.
type prices struct {
	onDemand map[ec2types.InstanceType]float64
	ratio    float64
}

func (p prices) LivenessProbe(*http.Request) error           { return nil }
func (p prices) InstanceTypes() []ec2types.InstanceType      { return lo.Keys(p.onDemand) }
func (p prices) UpdateOnDemandPricing(context.Context) error { return nil }
func (p prices) UpdateSpotPricing(context.Context) error     { return nil }
func (p prices) OnDemandPrice(t ec2types.InstanceType) (float64, bool) {
	usd, ok := p.onDemand[t]
	return usd, ok
}
func (p prices) SpotPrice(t ec2types.InstanceType, _ string) (float64, bool) {
	usd, ok := p.onDemand[t]
	return math.Round(usd*p.ratio*1e4) / 1e4, ok
}

// ordered lists the instance types in a known order; Karpenter's own is that of a map.
type ordered struct {
	*instancetype.DefaultProvider
	order string
}

func (o ordered) List(ctx context.Context, nodeClass instancetype.NodeClass) ([]*corecloudprovider.InstanceType, error) {
	its, err := o.DefaultProvider.List(ctx, nodeClass)
	if o.order == "name" {
		sort.Slice(its, func(i, j int) bool { return its[i].Name < its[j].Name })
	} else {
		rand.Shuffle(len(its), func(i, j int) { its[i], its[j] = its[j], its[i] })
	}
	return its, err
}

type parts struct {
	ctx      context.Context
	ec2      *fake.EC2API
	types    ordered
	clock    *clocktesting.FakeClock
	recorder *coretest.EventRecorder
	instance *instance.DefaultProvider
	security *securitygroup.DefaultProvider
	reserved *capacityreservation.DefaultProvider
	groups   *placementgroup.DefaultProvider
}

func newCache() *cache.Cache { return cache.New(awscache.DefaultTTL, awscache.DefaultCleanupInterval) }

func (w *World) assemble(ctx context.Context, ratio float64, order string, kube client.Client) (*parts, error) {
	p := &parts{ctx: ctx, ec2: fake.NewEC2API(), clock: clocktesting.NewFakeClock(time.Now()), recorder: coretest.NewEventRecorder()}
	p.ec2.DescribeInstanceTypesOutput.Set(&ec2.DescribeInstanceTypesOutput{InstanceTypes: w.infos})
	p.ec2.DescribeInstanceTypeOfferingsOutput.Set(&ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: w.offerings})
	unavailable := awscache.NewUnavailableOfferings()
	addresses := cache.New(awscache.AvailableIPAddressTTL, awscache.DefaultCleanupInterval)
	for _, z := range zones {
		addresses.SetDefault(z.ID, int32(1<<30))
	}
	subnets := subnet.NewDefaultProvider(p.ec2, newCache(), addresses)
	p.security = securitygroup.NewDefaultProvider(p.ec2, newCache())
	p.groups = placementgroup.NewProvider(p.ec2, newCache(), newCache())
	p.reserved = capacityreservation.NewProvider(p.ec2, p.clock, newCache(), newCache())
	shift := arczonalshift.NewProvider(fake.NewARCZonalShiftAPI(), p.clock, "")
	its := instancetype.NewDefaultProvider(newCache(), newCache(), newCache(), p.ec2, subnets, prices{w.onDemand, ratio},
		p.reserved, p.groups, unavailable, instancetype.NewDefaultResolver(region), shift, kube)
	if err := its.UpdateInstanceTypes(ctx); err != nil {
		return nil, err
	}
	if err := its.UpdateInstanceTypeOfferings(ctx); err != nil {
		return nil, err
	}
	p.types = ordered{its, order}
	templates := launchtemplate.NewDefaultProvider(ctx, newCache(), p.ec2, fake.NewEKSAPI(), amifamily.NewDefaultResolver(region),
		p.security, subnets, p.groups, lo.ToPtr("Y2EtYnVuZGxlCg=="), make(chan struct{}), net.ParseIP("10.0.100.10"), "https://test-cluster")
	templates.ClusterCIDR.Store(lo.ToPtr("10.100.0.0/16"))
	p.instance = instance.NewDefaultProvider(ctx, "", p.recorder, p.ec2, unavailable, subnets, templates, p.reserved, p.groups, shift,
		cache.New(cache.NoExpiration, cache.NoExpiration))
	return p, nil
}

func nodeClass(name string) *v1.EC2NodeClass {
	nc := &v1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("nodeclass-" + name)},
		Spec: v1.EC2NodeClassSpec{
			AMISelectorTerms:           []v1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []v1.SubnetSelectorTerm{{Tags: map[string]string{"*": "*"}}},
			SecurityGroupSelectorTerms: []v1.SecurityGroupSelectorTerm{{Tags: map[string]string{"*": "*"}}},
			Role:                       "test-role",
		},
	}
	nc.Status.InstanceProfile = "test-profile"
	nc.Status.Subnets = zones
	nc.Status.SecurityGroups = []v1.SecurityGroup{{ID: "sg-1"}}
	for _, arch := range []string{"amd64", "arm64"} {
		nc.Status.AMIs = append(nc.Status.AMIs, v1.AMI{ID: "ami-" + arch, Requirements: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
		}})
	}
	for _, c := range nc.StatusConditions().List() {
		nc.StatusConditions().SetTrue(c.Type)
	}
	nc.StatusConditions().SetTrue(status.ConditionReady)
	return nc
}

var started = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// podsOf makes the pending pods. Their UIDs follow the scenario's order, as all have one creation time.
func podsOf(sc *Scenario) ([]*corev1.Pod, map[types.UID]string) {
	var pods []*corev1.Pod
	group := map[types.UID]string{}
	n := 0
	for _, g := range sc.Pods {
		for i := 0; i < g.Count; i++ {
			p := g.Pod.DeepCopy()
			p.UID = types.UID(fmt.Sprintf("%08d", n))
			group[p.UID] = g.Pod.Name
			p.Name = fmt.Sprintf("%s-%d", g.Pod.Name, i)
			if p.Namespace == "" {
				p.Namespace = "default"
			}
			p.CreationTimestamp = started
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
			}}
			defaulted(&p.Spec)
			pods = append(pods, p)
			n++
		}
	}
	return pods, group
}

// defaulted does what the API server does to a pod: a limit without a request is the request.
func defaulted(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			for name, q := range containers[i].Resources.Limits {
				if _, ok := containers[i].Resources.Requests[name]; !ok {
					if containers[i].Resources.Requests == nil {
						containers[i].Resources.Requests = corev1.ResourceList{}
					}
					containers[i].Resources.Requests[name] = q
				}
			}
		}
	}
}

func indexed(b *fakeclient.ClientBuilder) *fakeclient.ClientBuilder {
	return b.
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&karpv1.NodeClaim{}, "status.providerID", func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName} })
}

func fixtures(ctx context.Context, sc *Scenario) []client.Object {
	var objects []client.Object
	classes := map[string]bool{}
	for i, np := range sc.NodePools {
		np = np.DeepCopy()
		np.UID = types.UID(fmt.Sprintf("pool-%d", i))
		if np.Spec.Template.Spec.NodeClassRef == nil {
			np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
		}
		classes[np.Spec.Template.Spec.NodeClassRef.Name] = true
		// A NodePool that is not valid is not ready, and Karpenter passes it over.
		if err := np.RuntimeValidate(ctx); err == nil {
			for _, c := range np.StatusConditions().List() {
				np.StatusConditions().SetTrue(c.Type)
			}
			np.StatusConditions().SetTrue(karpv1.ConditionTypeValidationSucceeded)
			np.StatusConditions().SetTrue(karpv1.ConditionTypeNodeClassReady)
		}
		objects = append(objects, np)
	}
	for name := range classes {
		objects = append(objects, nodeClass(name))
	}
	for i, ds := range sc.DaemonSets {
		ds = ds.DeepCopy()
		ds.UID = types.UID(fmt.Sprintf("daemonset-%d", i))
		if ds.Namespace == "" {
			ds.Namespace = "kube-system"
		}
		objects = append(objects, ds)
	}
	return objects
}

// Decide runs one scenario. reasons are the messages of the pods that found no place, by group.
func (w *World) Decide(sc *Scenario, order string) (*Decision, map[string]string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = log.IntoContext(ctx, logr.Discard())
	core := coretest.Options()
	core.CPURequests = 1000
	ctx = coreoptions.ToContext(ctx, core)
	ctx = options.ToContext(ctx, awstest.Options())
	ratio := 0.4
	if sc.SpotRatio != nil {
		ratio = *sc.SpotRatio
	}
	builder := indexed(fakeclient.NewClientBuilder().WithScheme(scheme.Scheme)).WithObjects(fixtures(ctx, sc)...)
	pods, group := podsOf(sc)
	for _, p := range pods {
		builder = builder.WithObjects(p)
	}
	kube := builder.Build()
	p, err := w.assemble(ctx, ratio, order, kube)
	if err != nil {
		return nil, nil, err
	}
	cp := cloudprovider.New(p.types, p.instance, p.recorder, kube, nil, p.security, p.reserved, p.groups, nodeoverlay.NewInstanceTypeStore(), nil)
	cluster := state.NewCluster(p.clock, kube, cp)
	if err := w.existing(ctx, sc, kube, cluster, p); err != nil {
		return nil, nil, err
	}
	prov := provisioning.NewProvisioner(kube, p.recorder, cp, cluster, p.clock, nil, nil)
	results, err := prov.Schedule(ctx)
	if err != nil {
		return nil, nil, err
	}
	d := &Decision{NodeClaims: []Claim{}, Unschedulable: map[string]int{}}
	placed := map[types.UID]bool{}
	for _, nc := range results.NewNodeClaims {
		c := Claim{NodePool: nc.NodePoolName, Pods: map[string]int{}, InstanceTypes: []string{}}
		for _, pod := range nc.Pods {
			c.Pods[group[pod.UID]]++
			placed[pod.UID] = true
		}
		for _, it := range nc.InstanceTypeOptions {
			c.InstanceTypes = append(c.InstanceTypes, it.Name)
		}
		sort.Strings(c.InstanceTypes)
		c.Launch = launch(ctx, prov, kube, cp, p.ec2, nc)
		d.NodeClaims = append(d.NodeClaims, c)
	}
	for _, n := range results.ExistingNodes {
		if d.ExistingNodes == nil {
			d.ExistingNodes = map[string]map[string]int{}
		}
		for _, pod := range n.Pods {
			if d.ExistingNodes[n.Name()] == nil {
				d.ExistingNodes[n.Name()] = map[string]int{}
			}
			d.ExistingNodes[n.Name()][group[pod.UID]]++
			placed[pod.UID] = true
		}
	}
	reasons := map[string]string{}
	for pod, err := range results.PodErrors {
		if msg := err.Error(); reasons[group[pod.UID]] == "" || msg < reasons[group[pod.UID]] {
			reasons[group[pod.UID]] = msg
		}
	}
	for _, pod := range pods {
		if placed[pod.UID] {
			continue
		}
		d.Unschedulable[group[pod.UID]]++
		if reasons[group[pod.UID]] == "" {
			if err := prov.Validate(ctx, pod); err != nil {
				reasons[group[pod.UID]] = "ignored: " + err.Error()
			}
		}
	}
	return d, reasons, nil
}

// launch makes the NodeClaim and launches it on the fake of EC2; what it was asked for is the answer.
func launch(ctx context.Context, prov *provisioning.Provisioner, kube client.Client, cp *cloudprovider.CloudProvider, api *fake.EC2API, nc *scheduling.NodeClaim) Launch {
	name, err := prov.Create(ctx, nc)
	claim := &karpv1.NodeClaim{}
	if err == nil {
		err = kube.Get(ctx, types.NamespacedName{Name: name}, claim)
	}
	if err == nil {
		_, err = cp.Create(ctx, claim)
	}
	if err != nil {
		return Launch{InstanceTypes: []string{}, Error: err.Error()}
	}
	return launched(api.CreateFleetBehavior.CalledWithInput.Pop())
}

func launched(in *ec2.CreateFleetInput) Launch {
	l := Launch{CapacityType: string(in.TargetCapacitySpecification.DefaultTargetCapacityType), InstanceTypes: []string{}}
	if in.SpotOptions != nil {
		l.AllocationStrategy = string(in.SpotOptions.AllocationStrategy)
	}
	if in.OnDemandOptions != nil {
		l.AllocationStrategy = string(in.OnDemandOptions.AllocationStrategy)
	}
	seen := map[string]bool{}
	for _, config := range in.LaunchTemplateConfigs {
		for _, o := range config.Overrides {
			if !seen[string(o.InstanceType)] {
				seen[string(o.InstanceType)] = true
				l.InstanceTypes = append(l.InstanceTypes, string(o.InstanceType))
			}
		}
	}
	sort.Strings(l.InstanceTypes)
	return l
}

// existing makes the nodes that are there already, with labels, capacity and allocatable as Karpenter sets them, and
// the pods that run on them.
func (w *World) existing(ctx context.Context, sc *Scenario, kube client.Client, cluster *state.Cluster, p *parts) error {
	if len(sc.ExistingNodes) == 0 {
		return nil
	}
	class := nodeClass("default")
	its, err := p.types.List(ctx, class)
	if err != nil {
		return err
	}
	byName := lo.KeyBy(its, func(it *corecloudprovider.InstanceType) string { return it.Name })
	pools := lo.KeyBy(sc.NodePools, func(np *karpv1.NodePool) string { return np.Name })
	templates := map[string]*corev1.Pod{}
	for i := range sc.Pods {
		templates[sc.Pods[i].Pod.Name] = &sc.Pods[i].Pod
	}
	for _, e := range sc.ExistingNodes {
		it, ok := byName[e.InstanceType]
		if !ok {
			return fmt.Errorf("existing node %s: no instance type %s", e.Name, e.InstanceType)
		}
		np, ok := pools[e.NodePool]
		if !ok {
			return fmt.Errorf("existing node %s: no node pool %s", e.Name, e.NodePool)
		}
		labels := map[string]string{}
		for k, v := range np.Spec.Template.Labels {
			labels[k] = v
		}
		for _, r := range np.Spec.Template.Spec.Requirements {
			if len(r.Values) == 1 && r.Operator == corev1.NodeSelectorOpIn && !karpv1.WellKnownLabels.Has(r.Key) {
				labels[r.Key] = r.Values[0]
			}
		}
		for k, r := range it.Requirements {
			if r.Len() == 1 && r.Operator() == corev1.NodeSelectorOpIn {
				labels[k] = r.Values()[0]
			}
		}
		labels[corev1.LabelTopologyZone] = e.Zone
		labels[karpv1.CapacityTypeLabelKey] = e.CapacityType
		labels[karpv1.NodePoolLabelKey] = e.NodePool
		labels[corev1.LabelHostname] = e.Name
		labels[karpv1.NodeRegisteredLabelKey] = "true"
		labels[karpv1.NodeInitializedLabelKey] = "true"
		providerID := "aws:///" + e.Zone + "/i-" + e.Name
		capacity := lo.PickBy(it.Capacity, func(_ corev1.ResourceName, q resource.Quantity) bool { return !q.IsZero() })
		allocatable := lo.PickBy(it.Allocatable(), func(_ corev1.ResourceName, q resource.Quantity) bool { return !q.IsZero() })
		claim := &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "claim-" + e.Name, UID: types.UID("claim-" + e.Name), Labels: labels, CreationTimestamp: started},
			Spec: karpv1.NodeClaimSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
				Taints:       np.Spec.Template.Spec.Taints,
			},
			Status: karpv1.NodeClaimStatus{ProviderID: providerID, NodeName: e.Name, Capacity: capacity, Allocatable: allocatable},
		}
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeLaunched)
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeRegistered)
		claim.StatusConditions().SetTrue(karpv1.ConditionTypeInitialized)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: e.Name, UID: types.UID("node-" + e.Name), Labels: labels, CreationTimestamp: started},
			Spec:       corev1.NodeSpec{ProviderID: providerID, Taints: np.Spec.Template.Spec.Taints},
			Status: corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable, Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			}},
		}
		if err := kube.Create(ctx, claim); err != nil {
			return err
		}
		if err := kube.Create(ctx, node); err != nil {
			return err
		}
		var running []*corev1.Pod
		for _, name := range lo.Keys(e.Pods) {
			t, ok := templates[name]
			if !ok {
				return fmt.Errorf("existing node %s: no group %s", e.Name, name)
			}
			for i := 0; i < e.Pods[name]; i++ {
				pod := t.DeepCopy()
				pod.Name = fmt.Sprintf("%s-on-%s-%d", name, e.Name, i)
				pod.UID = types.UID(pod.Name)
				if pod.Namespace == "" {
					pod.Namespace = "default"
				}
				pod.Spec.NodeName = e.Name
				pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
				defaulted(&pod.Spec)
				if err := kube.Create(ctx, pod); err != nil {
					return err
				}
				running = append(running, pod)
			}
		}
		cluster.UpdateNodeClaim(claim)
		if err := cluster.UpdateNode(ctx, node); err != nil {
			return err
		}
		// Karpenter's cluster state learns of a running pod's anti-affinity here.
		for _, pod := range running {
			if err := cluster.UpdatePod(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// PrintLabels writes what Karpenter makes of each row: the labels it gives the type, its capacity and allocatable.
func (w *World) PrintLabels(out io.Writer) error {
	ctx := log.IntoContext(context.Background(), logr.Discard())
	ctx = coreoptions.ToContext(ctx, coretest.Options())
	ctx = options.ToContext(ctx, awstest.Options())
	p, err := w.assemble(ctx, 0.4, "name", fakeclient.NewClientBuilder().WithScheme(scheme.Scheme).Build())
	if err != nil {
		return err
	}
	its, err := p.types.List(ctx, nodeClass("default"))
	if err != nil {
		return err
	}
	all := map[string]any{}
	for _, it := range its {
		labels := map[string][]string{}
		for k, r := range it.Requirements {
			values := r.Values()
			sort.Strings(values)
			labels[k] = values
		}
		offered := []string{}
		for _, o := range it.Offerings {
			if o.Available {
				offered = append(offered, fmt.Sprintf("%s %s %g", o.Zone(), o.CapacityType(), o.Price))
			}
		}
		sort.Strings(offered)
		all[it.Name] = map[string]any{"labels": labels, "capacity": it.Capacity, "allocatable": it.Allocatable(), "offerings": offered}
	}
	return json.NewEncoder(out).Encode(all)
}
