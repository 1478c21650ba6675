"""What an audit of a page asks: title, language, headings, names, contrast, targets, width.

The bounds are those of WCAG 2.2, level AA: contrast 1.4.3, targets 2.5.8, reflow 1.4.10.
"""

from __future__ import annotations

from collections.abc import Sequence

from clicks import Person

PHONE, DESKTOP = 390, 1280

_SCRIPT = r"""
(() => {
  const faults = []
  const shown = one => one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})
    && one.getBoundingClientRect().width > 1 && one.getBoundingClientRect().height > 1
  const named = one => `${one.tagName.toLowerCase()}${one.id ? "#" + one.id : ""}${
    one.classList.length ? "." + [...one.classList].join(".") : ""} ${
    (one.innerText ?? one.textContent ?? "").trim().slice(0, 40)}`
  const all = selector => [...document.querySelectorAll(selector)].filter(shown)

  if (!document.title.trim()) faults.push("no title")
  if (!document.documentElement.lang) faults.push("no language")
  if (!document.querySelector("meta[name=viewport]")) faults.push("no viewport")
  document.querySelectorAll("img:not([alt]), svg[role=img]:not([aria-label]):not(:has(title))")
    .forEach(one => faults.push(`no text: ${named(one)}`))

  const levels = all("h1, h2, h3, h4, h5, h6").map(one => [Number(one.tagName[1]), named(one)])
  if (levels.filter(([level]) => level === 1).length !== 1) faults.push("not one h1")
  levels.reduce((before, [level, name]) => {
    if (level > before + 1) faults.push(`h${before} is followed by ${name}`)
    return level
  }, 0)

  const controls = all("button, input, select, textarea, a[href], summary, [role=button], [role=tab]")
  const name = one => one.getAttribute("aria-label") || one.textContent.trim() || one.title
    || [...(one.labels ?? [])].map(label => label.textContent).join("").trim()
    || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent
    || [...one.querySelectorAll("img[alt], svg[aria-label]")].map(i => i.alt || i.ariaLabel).join("")
  controls.filter(one => one.type !== "hidden" && !name(one))
    .forEach(one => faults.push(`no name: ${named(one)}`))

  const width = document.documentElement.scrollWidth
  if (width > innerWidth) faults.push(`${width} pixels wide of ${innerWidth}`)

  // A target is 24 pixels wide and high, or its circle of 24 pixels meets no other target.
  const inText = one => getComputedStyle(one).display === "inline"
    && one.parentElement.textContent.trim() !== one.textContent.trim()
  const boxes = controls.map(one => [one, one.getBoundingClientRect()])
  for (const [one, box] of boxes) {
    if ((box.width >= 23.5 && box.height >= 23.5) || inText(one)) continue
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    const near = boxes.find(([other, at]) => {
      if (other === one || other.contains(one) || one.contains(other)) return false
      const [dx, dy] = [Math.max(at.left - x, 0, x - at.right), Math.max(at.top - y, 0, y - at.bottom)]
      const small = at.width < 23.5 || at.height < 23.5
      const [cx, cy] = [at.x + at.width / 2, at.y + at.height / 2]
      return small ? Math.hypot(cx - x, cy - y) < 23.5 : Math.hypot(dx, dy) < 11.5
    })
    if (near) faults.push(`${Math.round(box.width)}×${Math.round(box.height)} beside ${named(near[0])}: ${named(one)}`)
  }

  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true})
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1]
  const behind = one => {
    const layers = []
    for (let at = one; at; at = at.parentElement) {
      const style = getComputedStyle(at)
      if (style.backgroundImage !== "none") return null
      layers.unshift(rgba(style.backgroundColor))
    }
    const scheme = getComputedStyle(document.documentElement).colorScheme
    const dark = scheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches
    return layers.reduce((below, layer) => over(layer, below), dark ? [18, 18, 18, 1] : [255, 255, 255, 1])
  }
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0)
  const dull = new Set()
  for (const one of all("body *")) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())
    if (!own || one.closest("[disabled], [aria-disabled=true], [aria-hidden=true], script, style, .katex")) continue
    const style = getComputedStyle(one), back = one instanceof SVGElement ? null : behind(one)
    if (!back) continue
    const front = over(rgba(style.color), back)
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b)
    const contrast = (high + 0.05) / (low + 0.05)
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700)
    if (contrast < (large ? 3 : 4.5) - 0.01) {
      const key = `contrast ${contrast.toFixed(2)} of ${style.color} on ${back.slice(0, 3).map(Math.round)}`
      if (!dull.has(key)) faults.push(`${key}: ${named(one)}`)
      dull.add(key)
    }
  }
  return faults
})()
"""


def page_faults(person: Person, schemes: Sequence[str] = ("light", "dark")) -> dict[str, list[str]]:
    """What is wrong with the page, by the width of the screen and the scheme of colours."""
    found = {}
    for width, height in ((DESKTOP, 860), (PHONE, 844)):
        person.resize(width, height)
        for scheme in schemes:
            person.prefers(scheme)
            person.waits(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
            person.waits("document.getAnimations().every(one => one.playState !== 'running')")
            faults = person.of(_SCRIPT)
            if faults:
                found[f"{width} {scheme}"] = faults
    return found
