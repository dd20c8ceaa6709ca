// A small line of a trend: decoration beside a number, so that no screen reader reads it.

const WIDTH = 120;
const HEIGHT = 32;

export function Sparkline({ values }: { readonly values: readonly number[] }) {
  const most = Math.max(...values, 0);
  if (values.length < 2 || most === 0) return null;
  const step = WIDTH / (values.length - 1);
  const points = values.map((value, index) => {
    const height = (Math.max(0, value) / most) * (HEIGHT - 4);
    return `${(index * step).toFixed(1)},${(HEIGHT - 2 - height).toFixed(1)}`;
  });
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.join(" ")} />
    </svg>
  );
}
