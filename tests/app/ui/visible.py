"""What a person sees of a page: an element that is there, has a place, and stands out from what is behind it."""

from __future__ import annotations

from playwright.sync_api import Locator

GRAPHIC = 3.0
"""The least contrast of a part of a drawing that is needed to understand it (WCAG 2.2, 1.4.11)."""

_LOOK = """element => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = "#000"; pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map(n => top[n] * top[3] + below[n] * (1 - top[3]));
  const light = colour => colour.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  let opacity = 1, hidden = "", behind = [];
  for (let at = element; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    opacity *= Number(style.opacity);
    if (style.display === "none") hidden = hidden || `display: none of ${at.tagName}.${at.getAttribute("class")}`;
    if (at !== element) behind.push(rgba(style.backgroundColor));
  }
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  if (style.visibility !== "visible") hidden = hidden || `visibility: ${style.visibility}`;
  const ground = behind.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  const isDrawn = element instanceof SVGElement;
  const thick = isDrawn && style.stroke !== "none" ? parseFloat(style.strokeWidth) : 0;
  const paints = isDrawn ? [style.fill !== "none" && style.fill, thick > 0 && style.stroke]
    : [element.textContent.trim() ? style.color : style.backgroundColor];
  const contrasts = paints.filter(Boolean).map(rgba).map(paint => {
    const [a, b] = [light(over([...paint.slice(0, 3), paint[3] * opacity], ground)), light(ground)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
  return {hidden, opacity, wide: Math.max(box.width, thick), high: Math.max(box.height, thick),
          contrast: Math.max(0, ...contrasts)};
}"""


def is_seen(elements: Locator, *, contrast: float = GRAPHIC) -> None:
    """Requires that there are such elements, and that a person sees each: not hidden, with a size, standing out.

    `contrast` is the least of its strongest colour with what is behind it.
    """
    every = elements.all()
    assert every, f"there is none: {elements}"
    for one in every:
        found = one.evaluate(_LOOK)
        told = f"{one.evaluate('one => one.outerHTML')[:120]}: {found}"
        assert not found["hidden"], told
        assert found["opacity"] > 0.5, told
        assert min(found["wide"], found["high"]) >= 1, told
        assert found["contrast"] >= contrast, told
